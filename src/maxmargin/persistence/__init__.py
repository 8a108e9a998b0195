"""Model files: maxmargin's own format, LIBSVM's, and ONNX.

>>> import os, tempfile
>>> from maxmargin import OneClassSVM
>>> from maxmargin.persistence import kind, load, save
>>> with tempfile.TemporaryDirectory() as folder:
...     path = os.path.join(folder, "model.mm")
...     save(OneClassSVM().fit([[0.0], [1.0], [2.0]]), path)
...     kind(path), load(path)
('maxmargin', OneClassSVM())
"""

from maxmargin.persistence.libsvm import load_libsvm, save_libsvm
from maxmargin.persistence.onnx import to_onnx
from maxmargin.persistence.sniff import kind
from maxmargin.persistence.store import load, save
from maxmargin.persistence.streams import ModelFileError

__all__ = ["ModelFileError", "kind", "load", "load_libsvm", "save", "save_libsvm", "to_onnx"]
