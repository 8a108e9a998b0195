"""The check of words finds what the project avoids, and the project is free of it."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import check_words  # noqa: E402


def test_texts_and_names_follow_the_list():
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "check_words.py"], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_every_checked_place_exists_and_every_exception_is_needed():
    places = (*check_words.CHECKED, *check_words.RECORDED, *check_words.ALLOWED_NAMES)
    assert all((ROOT / name).exists() for name in places)
    for name, word in check_words.ALLOWED:
        assert any(word in line for _, line in check_words.texts(ROOT / name)), name


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("# pair steps crawl here", "crawl"),
        ('raise ValueError(f"the machine {machine} is wrong")', "machine"),
        ('def f():\n    """What is done."""', '"""What'),
        ('x = "a path that is none"', "is none"),
    ],
)
def test_a_word_in_a_comment_or_a_string_is_found(tmp_path, line, found):
    file = tmp_path / "module.py"
    file.write_text(line + "\n")
    (message,) = check_words.findings(file)
    assert message.startswith(f"module.py:{line.count(chr(10)) + 1}: {found!r}: write ")


@pytest.mark.parametrize(
    "line",
    [
        "machine = told(watched)",
        'key = values["machine"]',
        'f"{machine} of a support vector machine, --machine svc, machine learning, a state machine"',
        '"Training of Support Vector\\nMachines", "if there are none"',
    ],
)
def test_names_of_code_are_not_found(tmp_path, line):
    file = tmp_path / "module.py"
    file.write_text(line + "\n")
    assert not list(check_words.findings(file))


@pytest.mark.parametrize("line", ["class ExactMachine: ...", "def free_twins(): ...", "x = self._settled"])
def test_a_name_of_the_package_is_found(tmp_path, monkeypatch, line):
    monkeypatch.setattr(check_words, "ROOT", tmp_path)
    (tmp_path / "src").mkdir()
    file = tmp_path / "src" / "module.py"
    file.write_text(line + "\n")
    (message,) = check_words.findings(file)
    assert message.startswith("src/module.py:1: the name ")


def test_released_parts_of_the_changelog_are_not_checked(tmp_path):
    file = tmp_path / "CHANGELOG.md"
    file.write_text("## [Unreleased]\n\nA machine.\n\n## [0.1.0] - 2026-11-16\n\nA machine.\n")
    (message,) = check_words.findings(file)
    assert message.startswith("CHANGELOG.md:3: ")
