"""Pages that are made while the site is built, and links that hold in the repository and in the site.

`mkdocs` calls the functions whose names begin with ``on_``. Added are the reference (`docstrings`), the
gallery (`gallery`), the result tables of the benchmarks and the changelog. Pages link to those files where
they are in the repository; in the site the links lead to the pages made from them.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import docstrings
import gallery
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]
# Sections of the navigation, and the made pages that are added to them.
_SECTIONS = {
    "Reference": "reference",
    "Guides": "gallery",
    "Benchmarks, and how to repeat them": "results",
}
# The tables of results have many columns, and no headings that a table of contents could show.
_WIDE = "---\nhide:\n  - toc\n---\n\n"
# Files and folders of the repository, and the pages that are made from them.
_INSIDE = {"CHANGELOG.md": "changelog.md", "README.md": "index.md", "examples": "gallery/index.md"}
_LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")


def on_config(config: Any) -> Any:
    """Make the pages, and put them into the navigation."""
    made: dict[str, tuple[str, str | bytes]] = {}
    for path, page in docstrings.pages().items():
        made[f"reference/{path}"] = page
    shown, pictures = gallery.pages(ROOT / "examples")
    for path, page in shown.items():
        made[f"gallery/{path}"] = page
    for path, picture in pictures.items():
        made[f"gallery/{path}"] = ("", picture)
    for result in sorted((ROOT / "benchmarks" / "results").glob("*.md")):
        made[f"results/{result.name}"] = (result.stem, _WIDE + result.read_text(encoding="utf-8"))
    made["changelog.md"] = ("Changelog", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    config.extra["made"] = made
    for entry in config.nav or []:
        for title, folder in _SECTIONS.items():
            if title in entry:
                known = [page for item in entry[title] for page in item.values()]
                entry[title] += [
                    {name: path}
                    for path, (name, _) in made.items()
                    if path.startswith(f"{folder}/") and name and path not in known
                ]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add the pages to those of the folder."""
    for path, (_, content) in config.extra["made"].items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Lead links that leave the folder to the pages that are made from their targets."""
    here = posixpath.dirname(page.file.src_uri)

    def lead(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join("docs", here, match.group(2)))
        inside = _INSIDE.get(target)
        if target.startswith("benchmarks/results/") and target.endswith(".md"):
            inside = "results/" + posixpath.basename(target)
        elif target.startswith("examples/") and target.endswith(".py"):
            inside = "gallery/" + posixpath.basename(target).removesuffix(".py") + ".md"
        if inside is None:
            return match.group(0)
        return match.group(1) + posixpath.relpath(inside, here or ".") + match.group(3)

    return _LINK.sub(lead, markdown)
