"""The gallery: every script of ``examples/``, run while the site is built, with what it draws and prints."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
from pathlib import Path

INTRODUCTION = (
    "Scripts of the folder `examples/`. They were run when this site was built: pictures and output are "
    "theirs. Each runs by itself, `python examples/NAME.py`, on data that scikit-learn bundles or makes."
)


def run(script: Path) -> tuple[str, list[bytes]]:
    """The output of a script, and the pictures that it writes, in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "MPLBACKEND": "Agg"}
        done = subprocess.run(
            [sys.executable, str(script.resolve())], cwd=folder, env=environment, text=True,
            capture_output=True, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{script} failed:\n{done.stderr}")
        return done.stdout, [picture.read_bytes() for picture in sorted(Path(folder).glob("*.png"))]


def pages(folder: Path) -> tuple[dict[str, tuple[str, str]], dict[str, bytes]]:
    """Title and Markdown of each page, and the pictures, by their paths below ``gallery/``."""
    out: dict[str, tuple[str, str]] = {}
    pictures: dict[str, bytes] = {}
    entries = []
    for script in sorted(folder.glob("*.py")):
        source = script.read_text(encoding="utf-8")
        doc = ast.get_docstring(ast.parse(source)) or script.stem
        title, _, text = doc.partition("\n")
        printed, drawn = run(script)
        parts = [f"# {title.rstrip('.')}", text.strip()]
        for k, picture in enumerate(drawn):
            pictures[f"{script.stem}-{k}.png"] = picture
            parts.append(f"![{title}]({script.stem}-{k}.png)")
        if printed:
            parts.append(f"```text\n{printed.rstrip()}\n```")
        code = source.split('"""', 2)[2].strip()
        parts.append(f"`examples/{script.name}`:\n\n```python\n{code}\n```")
        out[f"{script.stem}.md"] = (title.rstrip("."), "\n\n".join(parts))
        entries.append(f"## [{title.rstrip('.')}]({script.stem}.md)\n\n{text.strip()}")
        if drawn:
            entries.append(f"[![{title}]({script.stem}-0.png)]({script.stem}.md)")
    index = "\n\n".join(["# Gallery", INTRODUCTION, *entries])
    return {"index.md": ("Gallery", index), **out}, pictures
