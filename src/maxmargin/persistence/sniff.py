"""The kind of a model file, from its first bytes."""

from __future__ import annotations

from typing import Literal

from maxmargin._files import File, is_path
from maxmargin.persistence.native import MAGIC
from maxmargin.persistence.streams import reading

Kind = Literal["maxmargin", "libsvm", "onnx"]


def kind(file: File) -> Kind | None:
    r"""Recognise the kind of a model file without reading the model.

    Parameters
    ----------
    file : path or seekable binary file object
        A file object is left where it was.

    Returns
    -------
    "maxmargin", "libsvm", "onnx" or None
        None for anything else. Only the first bytes are looked at: errors in the file are found when it is
        loaded.

    Examples
    --------
    >>> import io
    >>> from maxmargin.persistence import kind
    >>> kind(io.BytesIO(b"svm_type c_svc\nkernel_type rbf\n"))
    'libsvm'
    """
    with reading(file) as (stream, _):
        at = None if is_path(file) else stream.tell()
        first = stream.read(16)
        if at is not None:
            stream.seek(at)
    if not isinstance(first, bytes):
        raise TypeError("file must be opened in binary mode, open(..., 'rb').")
    if first.startswith(MAGIC):
        return "maxmargin"
    if first.split()[:1] == [b"svm_type"]:
        return "libsvm"
    # A protocol buffer whose first field is a small version number, followed by a field of text or a message.
    if len(first) > 2 and first[0] == 0x08 and 1 <= first[1] < 64 and first[2] in (0x12, 0x3A, 0x42):
        return "onnx"
    return None
