"""The page on the architecture names every module of the package once, and no others."""

import re
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "maxmargin"
PAGE = (ROOT / "docs" / "notes" / "architecture.md").read_text(encoding="utf-8")
MODULES = {path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py") if path.name != "__init__.py"}


def named() -> Counter[str]:
    """Files of the package in the text, whose paths are given, and in the table, by folder."""
    text, table = PAGE.split("\n## All other files\n")
    found = Counter(re.findall(r"\*\*`([\w/]+\.py)`\*\*", text))
    folder = ""
    for line in re.findall(r"^\| (?!folder).*", table, re.MULTILINE):
        first, files = re.fullmatch(r"\|(.*?)\|(.*)\|", line).groups()
        if first.strip():  # otherwise the row belongs to the folder above
            folder = first.strip(" `").removeprefix("maxmargin/")
        found.update(folder + name for name in re.findall(r"`(\w+\.py)`", files))
    return found


def test_every_file_on_the_page_exists():
    assert not set(named()) - MODULES
    assert all((ROOT / name).exists() for name in re.findall(r"`(tests/\w+\.py)`", PAGE))


def test_every_module_is_on_the_page_exactly_once():
    assert not MODULES - set(named())
    assert not [name for name, times in named().items() if times > 1]


def test_paths_in_the_text_are_written_in_one_way():
    text = PAGE.split("\n## All other files\n")[0]
    assert not re.findall(r"(?<!\*\*)`(?!tests/)[\w/]+\.py`", text)
