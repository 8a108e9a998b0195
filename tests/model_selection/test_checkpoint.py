import json
import random

import numpy as np
import pytest

from maxmargin.model_selection.checkpoint import Checkpoint, CheckpointError, fingerprint
from maxmargin.model_selection.jobs import Job

JOB = Job(folds=(1,), nodes=(3, 4), parents=(-1, 3))
RESULTS = [
    {"fit_error": None, "test_scores": np.float64(0.1 + 0.2), "fit_time": 0.5, "n_test_samples": 7},
    {"fit_error": None, "test_scores": {"a": 0.25, "b": float("nan")}, "fit_time": 0.5, "n_test_samples": 7},
]


@pytest.fixture
def file(tmp_path):
    """A checkpoint of three jobs."""
    store = Checkpoint(tmp_path / "c", "x")
    assert store.load() == {}
    store.add(JOB, [RESULTS])
    for fold in (2, 3):
        store.add(Job((fold,), (3,), (-1,)), [RESULTS[:1]])
    return tmp_path / "c"


def test_results_come_back_bit_for_bit(file):
    found = Checkpoint(file, "x").load()
    assert set(found) == {(1, 3), (1, 4), (2, 3), (3, 3)}
    assert found[1, 3]["test_scores"] == 0.1 + 0.2
    assert np.isnan(found[1, 4]["test_scores"]["b"])


def test_lines_are_json(file):
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert lines[0]["maxmargin search"] == "x"
    assert lines[1]["nodes"] == [3, 4]


@pytest.mark.parametrize("left", [0, 1, 5, 30, -1])
def test_a_last_line_that_was_cut_off_is_dropped_and_written_over(file, left):
    whole = file.read_bytes()
    last = whole.splitlines()[-1]
    file.write_bytes(whole + last[: left if left >= 0 else len(last)])
    again = Checkpoint(file, "x")
    assert len(again.load()) == 4
    assert file.read_bytes() == whole
    again.add(Job((0,), (0,), (-1,)), [RESULTS[:1]])
    assert len(Checkpoint(file, "x").load()) == 5


@pytest.mark.parametrize("left", [0, 1, 20, -1])
def test_a_first_line_that_was_cut_off_is_written_again(file, left):
    first = file.read_bytes().splitlines(keepends=True)[0]
    file.write_bytes(first[:left])
    assert Checkpoint(file, "x").load() == {}
    assert file.read_bytes() == first


def test_a_digit_of_a_score_that_was_changed_is_reported_with_file_and_line(file):
    text = file.read_text()
    assert "0.25" in text
    file.write_text(text.replace("0.25", "0.75"))
    with pytest.raises(CheckpointError, match=r"c, line 2: damaged"):
        Checkpoint(file, "x").load()
    assert file.read_text() == text.replace("0.25", "0.75")


def test_any_damage_is_an_error_or_leaves_fewer_results_but_never_others(file):
    whole, true = file.read_bytes(), repr(Checkpoint(file, "x").load())
    rng = random.Random(0)
    seen = set()
    for _ in range(2000):
        data = bytearray(whole)
        way = rng.choice(["byte", "cut", "drop", "twice", "insert"])
        at, to = sorted(rng.sample(range(len(data)), 2))
        if way == "byte":
            data[at] = rng.randrange(256)
        elif way == "cut":
            del data[at:]
        elif way == "drop":
            del data[at:to]
        elif way == "twice":
            data[at:at] = data[at:to]
        else:
            data[at:at] = rng.randbytes(rng.randrange(1, 20))
        file.write_bytes(data)
        try:
            found = Checkpoint(file, "x").load()
        except CheckpointError as error:
            seen.add((way, str(error).partition(f"{file}, line ")[2][:1]))
            continue
        seen.add((way, len(found)))
        assert set(found) <= {(1, 3), (1, 4), (2, 3), (3, 3)}
        assert all(repr(result) in true for result in found.values())
    for way in ("byte", "drop", "twice", "insert"):
        assert {(way, line) for line in "1234"} <= seen
    assert {("cut", count) for count in (0, 2, 3)} <= seen


def test_a_line_of_another_search_is_damage(file, tmp_path):
    other = Checkpoint(tmp_path / "other", "y")
    other.load()
    other.add(JOB, [RESULTS])
    file.write_bytes(file.read_bytes() + (tmp_path / "other").read_bytes().splitlines(keepends=True)[1])
    with pytest.raises(CheckpointError, match="line 5: damaged"):
        Checkpoint(file, "x").load()


def test_a_file_without_checksums_is_said_to_be_of_an_older_version(tmp_path):
    file = tmp_path / "c"
    file.write_text('{"maxmargin search": "x"}\n{"folds": [0], "nodes": [0], "results": [[{}]]}\n')
    with pytest.raises(CheckpointError, match="older version of maxmargin, without checksums"):
        Checkpoint(file, "x").load()


def test_a_missing_folder_is_an_error_and_is_not_made(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"folder of the checkpoint does not exist.*deep"):
        Checkpoint(tmp_path / "deep" / "c", "x").load()
    assert not (tmp_path / "deep").exists()


def test_failures_are_not_kept(tmp_path):
    store = Checkpoint(tmp_path / "c", "x")
    store.load()
    store.add(Job((0,), (0,), (-1,)), [[{"fit_error": "Traceback", "test_scores": np.nan}]])
    assert store.load() == {}


@pytest.mark.parametrize("text", ["hello", "[1, 2]", '{"other": 1}', "\x00\x01", "hello\nworld\n", "\xff\n"])
def test_another_file_is_not_touched(tmp_path, text):
    file = tmp_path / "c"
    file.write_text(text)
    with pytest.raises(CheckpointError, match="not a checkpoint"):
        Checkpoint(file, "x").load()
    assert file.read_text() == text


def test_fingerprints_tell_searches_apart():
    X = np.arange(6.0).reshape(3, 2)
    assert fingerprint("a", X) == fingerprint("a", X.copy())
    assert len({fingerprint("a", X), fingerprint("b", X), fingerprint("a", X + 1)}) == 3
