"""Which file of compiled code a process uses, and why not."""

from pathlib import Path

import numpy as np
import pytest
from numba.core import config

from maxmargin._compiled import code_cache, cpu, ready_code
from maxmargin._compiled.code_file import write_code
from maxmargin._compiled.jit import compiled

LEVELS = cpu.suitable_levels()
pytestmark = pytest.mark.skipif(not LEVELS, reason="no common set of instructions on this CPU")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder in which files are looked for, and a fresh choice before and after."""
    monkeypatch.setenv(ready_code.VARIABLE, str(tmp_path))
    monkeypatch.setattr(ready_code, "SHIPPED", tmp_path / "none")
    monkeypatch.setattr(ready_code, "user_folder", lambda: None)
    ready_code.choice.cache_clear()
    yield tmp_path
    ready_code.choice.cache_clear()


def put(folder, level=None, entries=None, other=None):
    level = level or LEVELS[0]
    path = folder / ready_code.file_name(level)
    write_code(path, {**ready_code.made_for(level), **(other or {})}, entries or {})
    return path


def reason():
    choice = ready_code.choice()
    assert choice.file is None
    return " ".join(choice.reasons)


def test_a_file_made_for_this_process_is_used(folder):
    path = put(folder)
    assert ready_code.choice().file.path == path


def test_the_best_level_comes_first(folder):
    if len(LEVELS) < 2:
        pytest.skip("this CPU has one level")
    put(folder, LEVELS[1])
    best = put(folder, LEVELS[0])
    assert ready_code.choice().file.path == best


@pytest.mark.parametrize("name", ["python", "numba", "llvmlite", "platform", "sources", "level"])
def test_code_for_another_process_is_not_used(folder, name):
    put(folder, other={name: "other"})
    assert f"made for other {name}" in reason()


def test_a_damaged_file_is_a_reason_and_not_an_error(folder):
    path = put(folder)
    path.write_bytes(path.read_bytes()[:40])
    assert "damaged" in reason()


def test_a_missing_file_is_a_reason_that_names_the_folder(folder):
    assert str(folder) in reason()


def test_the_variable_turns_files_off(folder, monkeypatch):
    put(folder)
    monkeypatch.setenv(ready_code.VARIABLE, "0")
    assert "is 0" in reason()


@pytest.mark.parametrize(
    ("name", "value"), [("CPU_NAME", "haswell"), ("OPT", 1), ("BOUNDSCHECK", 1), ("ENABLE_AVX", 0)]
)
def test_other_settings_of_numba_turn_files_off(folder, monkeypatch, name, value):
    put(folder)
    monkeypatch.setattr(config, name, value)
    assert f"NUMBA_{name}" in reason()


def _double(x):
    return 2.0 * x


def recorded(monkeypatch, value=None):
    """Entries of `_double`, compiled for arrays."""
    monkeypatch.setattr(code_cache, "recorded", {})
    compiled()(_double)(value if value is not None else np.ones(2))
    return dict(code_cache.recorded)


def test_a_function_is_read_from_a_file_and_not_compiled(folder, monkeypatch):
    with monkeypatch.context() as during:
        entries = recorded(during)
    put(folder, entries=entries)
    before = len(code_cache.loaded)
    function = compiled()(_double)
    np.testing.assert_array_equal(function(np.ones(3)), [2.0, 2.0, 2.0])
    assert len(code_cache.loaded) == before + 1
    assert not function.stats.cache_misses


def test_a_specialisation_that_is_missing_is_compiled(folder, monkeypatch):
    with monkeypatch.context() as during:
        entries = recorded(during)
    put(folder, entries=entries)
    function = compiled()(_double)
    assert function(3) == 6 and function.stats.cache_misses


def test_an_entry_that_cannot_be_used_is_compiled_and_noted(folder, monkeypatch):
    with monkeypatch.context() as during:
        entries = dict.fromkeys(recorded(during), b"not a pickle")
    put(folder, entries=entries)
    monkeypatch.setattr(code_cache, "failed", [])
    function = compiled()(_double)
    np.testing.assert_array_equal(function(np.ones(3)), [2.0, 2.0, 2.0])
    assert "_double" in code_cache.failed[0]


def test_closures_are_not_recorded(monkeypatch):
    factor = 3.0
    monkeypatch.setattr(code_cache, "recorded", {})
    compiled()(lambda x: factor * x)(np.ones(2))
    assert code_cache.recorded == {}


def test_the_stamp_of_a_cache_covers_sources_and_constants_of_other_modules(monkeypatch):
    from maxmargin.solvers import costs, pairs
    from maxmargin.solvers.c_path import node

    name = node.__name__
    before = ready_code.sources_of.__wrapped__(name)
    assert ready_code.sources_of.__wrapped__(name) == before
    with monkeypatch.context() as during:
        during.setattr(costs, "FINER", 0.123)
        assert ready_code.sources_of.__wrapped__(name) != before
    with monkeypatch.context() as during:  # to a value that another constant has
        during.setattr(costs, "SAMPLES_ROWS", costs.WHOLE_TABLE_MOST_ROWS)
        assert ready_code.sources_of.__wrapped__(name) != before
    with monkeypatch.context() as during:  # `pairs` is inlined into `node`
        during.setattr(pairs, "__file__", costs.__file__)
        assert ready_code.sources_of.__wrapped__(name) != before
    upstream = ready_code.sources_of.__wrapped__("maxmargin._compiled.sums")
    with monkeypatch.context() as during:
        during.setattr(node, "__file__", costs.__file__)
        assert ready_code.sources_of.__wrapped__("maxmargin._compiled.sums") == upstream


def test_without_a_home_folder_the_other_folders_are_used(monkeypatch, tmp_path):
    def no_home(*_):
        raise RuntimeError("could not determine the home directory")

    monkeypatch.setattr(ready_code.platformdirs, "user_cache_dir", no_home)
    monkeypatch.setenv(ready_code.VARIABLE, str(tmp_path))
    assert ready_code.user_folder() is None
    assert ready_code.folders() == [tmp_path, ready_code.SHIPPED]


def test_a_folder_may_be_given_relative_to_the_current_one_or_to_home(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("USERPROFILE", str(tmp_path / "home"))
    for given, expected in (("code", tmp_path / "code"), ("~/code", tmp_path / "home" / "code")):
        monkeypatch.setenv(ready_code.VARIABLE, given)
        assert ready_code.folders()[0] == expected


def test_sources_that_changed_after_the_import_have_no_stamp(monkeypatch):
    import maxmargin.solvers.pairs as module

    assert not ready_code.changed_since_import()
    path = Path(module.__file__)
    monkeypatch.setitem(ready_code._IMPORTED, path, 0)
    assert ready_code.changed_since_import()
    with pytest.raises(RuntimeError, match="changed since it was imported"):
        ready_code.sources_of.__wrapped__(module.__name__)
