"""Files of compiled functions: what is written is read, and damage is found."""

import pytest

from maxmargin._compiled.code_file import MAGIC, CodeFile, write_code

ENTRIES = {"f(int64)": b"one" * 1000, "g(float64)": bytes(range(256))}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "code.bin"
    write_code(path, {"level": "some"}, ENTRIES)
    return path


def test_what_is_written_is_read(path):
    file = CodeFile(path)
    assert file.made_for == {"level": "some"} and len(file) == 2
    assert {key: file.read(key) for key in file.names} == ENTRIES
    assert file.read("h()") is None


def test_a_file_without_entries_is_one(tmp_path):
    write_code(tmp_path / "empty", {}, {})
    assert len(CodeFile(tmp_path / "empty")) == 0


def test_nothing_but_the_file_is_left_behind(path):
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("size", [0, 5, len(MAGIC) + 3, len(MAGIC) + 20, -1])
def test_a_truncated_file_is_rejected_when_it_is_opened(path, size):
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(ValueError, match=r"damaged|incomplete|not a file"):
        CodeFile(path)


def test_every_changed_byte_is_found_before_an_entry_is_used(path):
    good = path.read_bytes()
    for at in range(0, len(good), 7):
        path.write_bytes(good[:at] + bytes([good[at] ^ 0x55]) + good[at + 1 :])
        try:
            file = CodeFile(path)
            found = {key: file.read(key) for key in ENTRIES}
        except Exception:  # any error leads to compilation
            continue
        # Bytes of zlib's headers that carry no data may differ.
        assert found == ENTRIES, at


def test_a_file_that_is_replaced_while_it_is_open_gives_its_own_entries(tmp_path):
    path = tmp_path / "code.bin"
    write_code(path, {"sources": "a"}, {"f()": b"old", "g()": b"old too"})
    file = CodeFile(path)
    write_code(path, {"sources": "b"}, {"f()": b"something longer", "g()": b"new"})
    assert file.made_for == {"sources": "a"} and file.read("f()") == b"old" and file.read("g()") == b"old too"
