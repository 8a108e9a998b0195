"""Training data whose samples are not in this process."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from numpy.typing import DTypeLike

from maxmargin._types import Index, Rows
from maxmargin.kernels.kernel import Kernel


class SamplesElsewhere(ABC):
    """Samples that were checked where they are, in place of the X of `fit`."""

    shape: tuple[int, int]

    @abstractmethod
    def gamma(self, gamma: str | float) -> float:
        """The number for the kernel coefficient, see `maxmargin.kernels.gamma.resolve_gamma`."""

    @abstractmethod
    def gram(self, kernel: Kernel, order: Index, dtype: DTypeLike, n_jobs: int | None) -> Rows:
        """The kernel rows of the samples `order`."""

    @abstractmethod
    def __getitem__(self, rows: Index) -> Any:
        """Samples, as they were given."""
