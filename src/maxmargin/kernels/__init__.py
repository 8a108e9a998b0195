"""Step 1, from data to kernel values: the kernels, their data, their rounding, and sums over many samples.

>>> from maxmargin.kernels import Kernel
"""

from maxmargin.kernels.gamma import resolve_gamma
from maxmargin.kernels.kernel import NAMES, Kernel
from maxmargin.kernels.points import Points

__all__ = ["NAMES", "Kernel", "Points", "resolve_gamma"]
