"""Settings of the gallery: the order of the examples, and no files left in their folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parents[2] / "examples"
# Pictures first, then what is printed only.
_ORDER = (
    "plot_boundary", "plot_regression", "plot_quantiles", "plot_targets", "plot_kernels", "one_class",
    "plot_incremental", "plot_search", "plot_explanations", "plot_hulls", "plot_solvers",
    "pipeline_and_pandas", "own_kernel", "own_solver", "leave_one_out", "warm_start", "dask_search",
)  # fmt: skip


class Order:
    """Key of sorting; examples that are not in the list come last, by name."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, name: str) -> tuple[int, str]:
        """Position of an example."""
        stem = Path(name).stem
        return (_ORDER.index(stem) if stem in _ORDER else len(_ORDER), stem)


def leave_no_files(settings: dict[str, Any], script: str | None, when: str) -> None:
    """Remove the picture that an example writes beside itself: the gallery has drawn it already."""
    if script is not None and when == "after":
        (FOLDER / Path(script).with_suffix(".png").name).unlink(missing_ok=True)
