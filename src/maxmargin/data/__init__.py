r"""Data files: LIBSVM/SVMlight, CSV, Parquet and NPZ, read to a table and written from one.

>>> import io
>>> from maxmargin import data
>>> table = data.read(io.BytesIO(b"width,height,kind\n1,2,cat\n3,4.5,dog\n"))
>>> table.names, table.target, table.y
(['width', 'height'], 'kind', array(['cat', 'dog'], dtype='<U3'))
"""

from maxmargin.data.files import FORMATS, read, write
from maxmargin.data.table import DataError, Table

__all__ = ["FORMATS", "DataError", "Table", "read", "write"]
