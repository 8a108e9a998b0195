"""Levels of CPUs."""

import pytest
from llvmlite import binding

from maxmargin._compiled import cpu


def test_levels_that_a_cpu_lacks_features_for_are_not_suitable(monkeypatch):
    monkeypatch.setattr(cpu.platform, "machine", lambda: "x86_64")
    v3 = dict.fromkeys(cpu._V3, True)
    monkeypatch.setattr(binding, "get_host_cpu_features", lambda: v3)
    assert [level.name for level in cpu.suitable_levels()] == ["x86-64-v3", "x86-64-v2"]
    v3["fma"] = False
    assert [level.name for level in cpu.suitable_levels()] == ["x86-64-v2"]


def test_an_unknown_cpu_runs_code_without_requirements_only(monkeypatch):
    def fail():
        raise RuntimeError("unknown")

    monkeypatch.setattr(binding, "get_host_cpu_features", fail)
    monkeypatch.setattr(cpu.platform, "machine", lambda: "x86_64")
    assert cpu.suitable_levels() == []
    monkeypatch.setattr(cpu.platform, "machine", lambda: "aarch64")
    assert [level.name for level in cpu.suitable_levels()] == ["armv8-a"]


def test_a_name_that_is_not_a_level_is_an_error_that_lists_them(monkeypatch):
    monkeypatch.setattr(cpu.platform, "machine", lambda: "x86_64")
    assert cpu.level_named("x86-64-v3").cpu == "x86-64-v3"
    with pytest.raises(ValueError, match="x86-64-v4, x86-64-v3"):
        cpu.level_named("x86-64-v9")
