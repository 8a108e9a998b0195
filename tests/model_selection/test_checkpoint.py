import numpy as np
import pytest

from maxmargin.model_selection.chains import Chain
from maxmargin.model_selection.checkpoint import Checkpoint, fingerprint

CHAIN = Chain(folds=(1,), nodes=(3, 4), parents=(-1, 3))
RESULTS = [
    {"fit_error": None, "test_scores": np.float64(0.1 + 0.2), "fit_time": 0.5, "n_test_samples": 7},
    {"fit_error": None, "test_scores": {"a": 0.25, "b": float("nan")}, "fit_time": 0.5, "n_test_samples": 7},
]


def test_results_come_back_bit_for_bit(tmp_path):
    file = tmp_path / "c"
    store = Checkpoint(file, "x")
    assert store.load() == {}
    store.add(CHAIN, [RESULTS])
    found = Checkpoint(file, "x").load()
    assert set(found) == {(1, 3), (1, 4)}
    assert found[1, 3]["test_scores"] == 0.1 + 0.2
    assert np.isnan(found[1, 4]["test_scores"]["b"])


def test_a_line_that_was_cut_off_is_dropped_and_written_over(tmp_path):
    file = tmp_path / "c"
    store = Checkpoint(file, "x")
    store.load()
    store.add(CHAIN, [RESULTS])
    whole = file.read_text()
    file.write_text(whole + whole.splitlines()[1][:30])
    again = Checkpoint(file, "x")
    assert len(again.load()) == 2
    assert file.read_text() == whole
    again.add(Chain((0,), (0,), (-1,)), [RESULTS[:1]])
    assert len(Checkpoint(file, "x").load()) == 3


def test_failures_are_not_kept(tmp_path):
    store = Checkpoint(tmp_path / "c", "x")
    store.load()
    store.add(Chain((0,), (0,), (-1,)), [[{"fit_error": "Traceback", "test_scores": np.nan}]])
    assert store.load() == {}


@pytest.mark.parametrize("text", ["hello", "[1, 2]", '{"other": 1}', "\x00\x01"])
def test_another_file_is_not_touched(tmp_path, text):
    file = tmp_path / "c"
    file.write_text(text)
    with pytest.raises(ValueError, match="not a checkpoint"):
        Checkpoint(file, "x").load()
    assert file.read_text() == text


def test_fingerprints_tell_searches_apart():
    X = np.arange(6.0).reshape(3, 2)
    assert fingerprint("a", X) == fingerprint("a", X.copy())
    assert len({fingerprint("a", X), fingerprint("b", X), fingerprint("a", X + 1)}) == 3
