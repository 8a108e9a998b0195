"""Code blocks, headings and links of a Markdown page, with the lines on which they stand."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,})(?P<info>[^`]*)$")
_LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (?P<text>.*?)\s*#*$")
_NOT_RUN = re.compile(r'title="Not run[^":]*: (?P<reason>[^"]+)"')


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the rest of its first line, its text and the line of its first line."""

    language: str
    options: str
    text: str
    line: int

    @property
    def not_run(self) -> str:
        """Why it is not run; empty if it is. Readers see the reason as the block's title."""
        found = _NOT_RUN.search(self.options)
        return found.group("reason") if found else ""


def blocks(markdown: str) -> Iterator[Block]:
    """The fenced blocks of a page, in order."""
    opened: tuple[str, str, int] | None = None
    inside: list[str] = []
    for number, line in enumerate(markdown.splitlines(), 1):
        match = _FENCE.match(line)
        if opened is None:
            if match:
                opened, inside = (match["fence"], match["info"].strip(), number), []
        elif match and match["fence"] == opened[0] and not match["info"].strip():
            language, _, options = opened[1].partition(" ")
            yield Block(language, options.strip(), "\n".join(inside) + "\n", opened[2] + 1)
            opened = None
        else:
            inside.append(line)
    if opened is not None:
        raise ValueError(f"The block that begins on line {opened[2]} has no end.")


def prose(markdown: str) -> Iterator[tuple[int, str]]:
    """The lines outside of fenced blocks, with their numbers; code in backticks is left out."""
    fence = ""
    for number, line in enumerate(markdown.splitlines(), 1):
        match = _FENCE.match(line)
        if match and not fence:
            fence = match["fence"]
        elif match and match["fence"] == fence and not match["info"].strip():
            fence = ""
        elif not fence:
            yield number, re.sub(r"`[^`]*`", "``", line)


def links(markdown: str) -> Iterator[tuple[int, str]]:
    """Targets of links and images, with their lines."""
    for number, line in prose(markdown):
        for match in _LINK.finditer(line):
            yield number, match["target"]


def anchors(markdown: str) -> set[str]:
    """Names that a link may use after ``#``: headings as the site and GitHub spell them."""
    found = set()
    fenced = {b.line + k for b in blocks(markdown) for k in range(-1, b.text.count("\n") + 1)}
    for number, line in enumerate(markdown.splitlines(), 1):
        match = _HEADING.match(line)
        if match and number not in fenced:
            plain = unicodedata.normalize("NFKD", match["text"]).encode("ascii", "ignore").decode()
            plain = re.sub(r"[^\w\s-]", "", plain).strip().lower()
            found.add(re.sub(r"[-\s]+", "-", plain))
    return found
