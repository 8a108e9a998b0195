"""Docstrings of methods that estimators inherit from scikit-learn."""

from __future__ import annotations

import re
from typing import Any

# Labels and glossary of scikit-learn's own site, which are unknown here without a network.
_FOREIGN = re.compile(r":(?:ref|term):`([^`<]+?)(?:\s*<[^`>]+>)?`")


def plain_links(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Replace links within scikit-learn's site by their text."""
    lines[:] = [_FOREIGN.sub(r"\1", line) for line in lines]


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", plain_links, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
