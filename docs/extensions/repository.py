"""Pages made from files elsewhere in the repository, and links that hold in both places.

Pages link to result tables, examples and the changelog where these are in the repository. In the site such
links lead to the pages made from them. Code blocks with a title (``title="Not run here: ..."``) show it, and
a picture in a paragraph of its own has its text as caption.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
RESULTS = ROOT / "benchmarks" / "results"

_PAGES = {
    "CHANGELOG.md": "changelog.md",
    "README.md": "index.md",
    "benchmarks/results": "results/index.rst",
    "examples": "gallery/index.rst",
}
_LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")
_IMAGE = re.compile(r"^!\[(?P<text>[^\]]+)\]\((?P<path>[^)\s]+)\)$", re.MULTILINE)
# Doctests end with an empty line.
_EMPTY = re.compile(r"\n+\n(?=`{3,}$)", re.MULTILINE)
_TITLE = re.compile(r'^(?P<fence>`{3,})(?P<language>\w+) title="(?P<title>[^"]+)"$', re.MULTILINE)


def target(path: str, here: str) -> str | None:
    """The page, relative to folder `here` of docs, that is made from a file; None if there is no such page.

    >>> target("benchmarks/results/peers.md", "guide"), target("examples/one_class.py", "")
    ('../results/peers.rst', 'gallery/one_class.rst')
    """
    inside = _PAGES.get(path)
    folder, name = posixpath.split(path)
    if folder == "benchmarks/results" and name.endswith(".md"):
        inside = f"results/{name.removesuffix('.md')}.rst"
    elif folder == "examples" and name.endswith(".py"):
        inside = f"gallery/{name.removesuffix('.py')}.rst"
    return inside and posixpath.relpath(inside, here or ".")


def adapted(text: str, folder: str, here: str) -> str:
    """A Markdown text of a `folder` of the repository, for a page in folder `here` of docs."""

    def lead(match: re.Match[str]) -> str:
        page = target(posixpath.normpath(posixpath.join(folder, match[2])), here)
        return match[0] if page is None else match[1] + page + match[3]

    text = _IMAGE.sub(r":::{figure} \g<path>\n:alt: \g<text>\n\n\g<text>\n:::", _LINK.sub(lead, text))
    text = _EMPTY.sub("\n", text)
    return _TITLE.sub(r"\g<fence>{code-block} \g<language>" + "\n" + r":caption: \g<title>", text)


def on_read(app: Any, name: str, source: list[str]) -> None:
    """Adapt a page."""
    if name == "changelog":
        app.env.note_dependency(str(ROOT / "CHANGELOG.md"))
        source[0] = adapted((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), ".", "")
    elif app.env.doc2path(name, base=False).suffix == ".md":
        here = posixpath.dirname(name)
        source[0] = adapted(source[0], posixpath.join("docs", here), here)


def make_results(app: Any) -> None:
    """Write a page for each table of results: it includes the table."""
    folder = DOCS / "results"
    folder.mkdir(exist_ok=True)
    names = sorted(path.stem for path in RESULTS.glob("*.md"))
    for name in names:
        text = f".. include:: ../../benchmarks/results/{name}.md\n   :parser: myst_parser.sphinx_\n"
        write(folder / f"{name}.rst", text)
    rows = "\n".join(f"   {name}" for name in names)
    text = (
        "Result tables\n=============\n\n"
        "Each program of ``benchmarks`` writes one of these tables; :doc:`/benchmarks` explains them."
        "\n\n.. toctree::\n   :maxdepth: 1\n\n"
    )
    write(folder / "index.rst", f"{text}{rows}\n")
    for page in folder.glob("*.rst"):
        if page.stem not in {*names, "index"}:
            page.unlink()


def write(path: Path, text: str) -> None:
    """Write a file if it would change: Sphinx reads again what is newer than its last build."""
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", make_results)
    app.connect("source-read", on_read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
