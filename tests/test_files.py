"""Files that are written as a whole or not at all."""

import os
import stat
import threading

import pytest

from maxmargin._files import writing


def test_a_file_is_replaced_when_all_is_written_or_not_at_all(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"before")

    def fail():
        with writing(path) as stream:
            stream.write(b"half")
            raise ValueError("a failure")

    with pytest.raises(ValueError, match="a failure"):
        fail()
    assert path.read_bytes() == b"before" and os.listdir(tmp_path) == ["file"]
    with writing(path) as stream:
        stream.write(b"after")
    assert path.read_bytes() == b"after" and os.listdir(tmp_path) == ["file"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_what_is_not_an_ordinary_file_stays_what_it_is(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    with writing(pipe) as stream:
        stream.write(b"content")
    reader.join(10)
    assert read == [b"content"] and stat.S_ISFIFO(os.stat(pipe).st_mode)
