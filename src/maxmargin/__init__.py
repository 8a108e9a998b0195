"""Kernel support vector machines: drop-in for scikit-learn's, fast, with a certified duality gap.

>>> from maxmargin import SVC
>>> SVC(C=10.0).fit([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"]).predict([[0.2], [2.9]])
array(['a', 'b'], dtype='<U1')
"""

from typing import TYPE_CHECKING, Any

from maxmargin._warmup import warmup
from maxmargin.estimators._scales import UnscaledDataWarning
from maxmargin.estimators.all_distances import AllDistancesSVC
from maxmargin.estimators.crammer_singer import CrammerSingerSVC
from maxmargin.estimators.incremental import IncrementalSVC
from maxmargin.estimators.incremental_svr import IncrementalSVR
from maxmargin.estimators.nu_svc import NuSVC
from maxmargin.estimators.one_class import OneClassSVM
from maxmargin.estimators.one_class_l2 import L2OneClassSVM
from maxmargin.estimators.quantile_svr import QuantileSVR
from maxmargin.estimators.svc import SVC
from maxmargin.estimators.svr import SVR, NuSVR

if TYPE_CHECKING:
    from maxmargin.cells.svc import CellSVC
    from maxmargin.cells.svr import CellSVR
    from maxmargin.model_selection.tuning.nu_svc_cv import NuSVCCV
    from maxmargin.model_selection.tuning.one_class_cv import OneClassSVMCV
    from maxmargin.model_selection.tuning.svc_cv import SVCCV
    from maxmargin.model_selection.tuning.svr_cv import SVRCV

__all__ = [
    "SVC",
    "SVCCV",
    "SVR",
    "SVRCV",
    "AllDistancesSVC",
    "CellSVC",
    "CellSVR",
    "CrammerSingerSVC",
    "IncrementalSVC",
    "IncrementalSVR",
    "L2OneClassSVM",
    "NuSVC",
    "NuSVCCV",
    "NuSVR",
    "OneClassSVM",
    "OneClassSVMCV",
    "QuantileSVR",
    "UnscaledDataWarning",
    "warmup",
]
__version__ = "0.2.0.dev0"


def __getattr__(name: str) -> Any:
    """Estimators whose modules take long to import."""
    if name == "CellSVC":
        from maxmargin.cells.svc import CellSVC

        return CellSVC
    if name == "CellSVR":
        from maxmargin.cells.svr import CellSVR

        return CellSVR
    if name == "SVCCV":
        from maxmargin.model_selection.tuning.svc_cv import SVCCV

        return SVCCV
    if name == "SVRCV":
        from maxmargin.model_selection.tuning.svr_cv import SVRCV

        return SVRCV
    if name == "NuSVCCV":
        from maxmargin.model_selection.tuning.nu_svc_cv import NuSVCCV

        return NuSVCCV
    if name == "OneClassSVMCV":
        from maxmargin.model_selection.tuning.one_class_cv import OneClassSVMCV

        return OneClassSVMCV
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Names of the module, with those that are not imported yet."""
    return sorted({*globals(), *__all__})
