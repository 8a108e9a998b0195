"""Report words and phrases that this project avoids, and what to write instead.

    python tools/check_words.py             # everything in CHECKED
    python tools/check_words.py FILE ...    # only these files, as far as they are in CHECKED

In Python files comments and strings are checked, in other files all text that is not `code`, in the changelog
only the unreleased part. In the package names are checked too. The exit code is 1 if anything was found.
"""

from __future__ import annotations

import io
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Files and folders whose texts follow the list.
CHECKED = (
    "CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "README.md", "SECURITY.md",
    "benchmarks", "docs", "examples", "src",
)  # fmt: skip
# Written by programs, with the names of columns at the time: not changed afterwards.
RECORDED = ("benchmarks/results",)
# Regular expression, and what to write instead.
AVOID = {
    r"\b[Cc]rawl(s|ed|ing)?\b": "converge slowly",
    r"\b[Dd]ear(er|est)?\b": "expensive",
    r"\b[Ff]ocus(es|ed)?\b": "the active variables, or the working set",
    r"\b(is|are|be) content\b": "has converged, or satisfies its conditions",
    r"\b[Ll]est\b": "so that ... not",
    r"(?<!here )\b(is|are) none\b": "there is no ...",
    r"\b(is|are) no (range|path|number|model|list|text)\b": "is not a ...",
    r"\bwhich cannot be\b": "say what is wrong and what to use instead",
    r"\b[Ss]ettle(s|d)?\b": "converge, or stop changing",
    r"\b([Tt]old|[Tt]ells?)\b": "say, state, show, or distinguish",
    r"\b[Tt]wins?\b": "paired variables",
    r"\bwatch(es|ed|ing)?\b": "record, monitor, or check",
    # Not: support vector machine, state machine, machine learning, --machine, and the end of a title.
    r"(?<!ector )(?<!tate )(?<!--)\bmachines?\b(?! learning)": "model, problem, class pair, or computer",
    r'(?<!ector )\bMachines?\b(?! Learning|")': "model, problem, class pair, or computer",
    r'"""What\b': "begin with a noun or a verb",
}  # fmt: skip
# Parts of names that the package avoids for the same reasons.
AVOID_NAMES = r"(?:^|_)(crawls?|focus|settled?|told|twins?|watched|machines?)(?=_|$)"
# Exceptions: file and text that was found.
ALLOWED = {
    ("src/maxmargin/inspection/trace.py", "machine"),  # a public parameter of TraceDisplay.from_estimator
}
# The same for names: those that users write.
ALLOWED_NAMES = {
    "src/maxmargin/cli": {"machine", "Machine"},  # the option --machine
    "src/maxmargin/_compiled/cpu.py": {"machine"},  # platform.machine
    "src/maxmargin/inspection/trace.py": {"machine"},
}
PUBLIC = {"Watched", "watched"}  # in every file: `maxmargin.inspection.Watched`, and its module


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered lines of the texts in a file: comments and strings of Python, or lines without `code`."""
    source = path.read_text(encoding="utf-8")
    if path.name == "CHANGELOG.md":  # released parts stay as they were published
        source = re.split(r"^## \[\d", source, maxsplit=1, flags=re.MULTILINE)[0]
    if path.suffix != ".py":
        yield from enumerate(re.sub(r"`[^`\n]*`", "``", source).splitlines(), 1)
        return
    kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in kinds and not re.fullmatch(r"""["']\w+["']""", token.string):
            # Up to Python 3.11 the expressions of an f-string are part of its token.
            text = re.sub(r"{[^{}]*}", "{}", token.string) if token.string[0] == "f" else token.string
            yield from enumerate(text.splitlines(), token.start[0])


def names(path: Path) -> Iterator[tuple[int, str]]:
    """Numbered names in a Python file."""
    for token in tokenize.generate_tokens(io.StringIO(path.read_text(encoding="utf-8")).readline):
        if token.type == tokenize.NAME:
            yield token.start[0], token.string


def findings(path: Path) -> Iterator[str]:
    """A message for each word of a file that should be replaced."""
    name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
    for number, line in texts(path):
        for pattern, instead in AVOID.items():
            for found in re.finditer(pattern, line):
                if (name, found[0]) not in ALLOWED:
                    yield f"{name}:{number}: {found[0]!r}: write {instead}"
    if name.startswith("src/") and path.suffix == ".py":
        allowed = PUBLIC.union(*(some for place, some in ALLOWED_NAMES.items() if name.startswith(place)))
        for number, word in names(path):
            if word not in allowed and avoided(word):
                yield f"{name}:{number}: the name {word!r}: choose one without {avoided(word)!r}"


def avoided(name: str) -> str:
    """The part of a name that should be replaced, if there is one."""
    found = re.search(AVOID_NAMES, re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
    return found[1] if found else ""


def checked(names: list[str]) -> list[Path]:
    """The named files that are in `CHECKED`; without names all files in it."""
    places = [ROOT / name for name in CHECKED]
    every = {file for place in places for file in ([place] if place.is_file() else place.rglob("*"))}
    recorded = [ROOT / name for name in RECORDED]
    every = {file for file in every if file.suffix in (".py", ".md") and file.parent not in recorded}
    return sorted(every & {Path(name).resolve() for name in names} if names else every)


if __name__ == "__main__":
    messages = [message for file in checked(sys.argv[1:]) for message in findings(file)]
    print("\n".join(messages), end="\n" if messages else "")
    sys.exit(bool(messages))
