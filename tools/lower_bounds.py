"""Print the lowest supported versions of the dependencies, for pip.

    python tools/lower_bounds.py > lowest.txt
    python -m pip install -e ".[test]" --constraint lowest.txt

The bounds are those of pyproject.toml.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def lowest(requirements: list[str]) -> list[str]:
    """The requirements with ``>=`` replaced by ``==``; all of them must have a lower bound.

    Examples
    --------
    >>> lowest(["numpy>=1.26", "scikit-learn>=1.6"])
    ['numpy==1.26', 'scikit-learn==1.6']
    """
    for requirement in requirements:
        if not re.fullmatch(r"[\w.-]+>=[\d.]+", requirement):
            raise ValueError(f"{requirement}: a lower bound such as name>=1.0 is needed.")
    return [requirement.replace(">=", "==") for requirement in requirements]


if __name__ == "__main__":
    print("\n".join(lowest(tomllib.loads(PYPROJECT.read_text(encoding="utf-8"))["project"]["dependencies"])))
