"""MathJax in the site itself: nothing is loaded from the network, and pages can be opened from the disk."""

from __future__ import annotations

import shutil
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

# Draws SVG, so that it needs no fonts: one file is all of it.
SCRIPT = "tex-svg.js"
PACKAGE = "sphinx-mathjax-offline"


def copy_mathjax(app: Any, error: Exception | None) -> None:
    """Copy MathJax from the package that brings it."""
    if error is None and app.builder.format == "html":
        (source,) = (file for file in distribution(PACKAGE).files or () if file.name == SCRIPT)
        target = Path(app.outdir) / "_static" / "mathjax"
        target.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source.locate(), target / SCRIPT)


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("build-finished", copy_mathjax)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
