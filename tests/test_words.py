"""The check of words finds what the project avoids, and the revised folders are free of it."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import check_words  # noqa: E402


def test_the_revised_folders_follow_the_list():
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "check_words.py"], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_every_checked_place_exists_and_every_exception_is_needed():
    assert all((ROOT / name).exists() for name in check_words.CHECKED)
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
        'f"{machine} of a support vector machine, --machine svc, machine learning"',
    ],
)
def test_names_of_code_are_not_found(tmp_path, line):
    file = tmp_path / "module.py"
    file.write_text(line + "\n")
    assert not list(check_words.findings(file))
