"""Kernel support vector machines: drop-in for scikit-learn's, fast, with a certified duality gap.

>>> from maxmargin import SVC
>>> SVC(C=10.0).fit([[0.0], [1.0], [2.0], [3.0]], ["a", "a", "b", "b"]).predict([[0.2], [2.9]])
array(['a', 'b'], dtype='<U1')
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from maxmargin._warmup import warmup

if TYPE_CHECKING:
    from maxmargin.cells.svc import CellSVC
    from maxmargin.cells.svr import CellSVR
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

# Modules of the public names. They are imported when a name is first used: `maxmargin --help` needs none.
_MODULES = {
    "AllDistancesSVC": "estimators.all_distances",
    "CellSVC": "cells.svc",
    "CellSVR": "cells.svr",
    "CrammerSingerSVC": "estimators.crammer_singer",
    "IncrementalSVC": "estimators.incremental",
    "IncrementalSVR": "estimators.incremental_svr",
    "L2OneClassSVM": "estimators.one_class_l2",
    "NuSVC": "estimators.nu_svc",
    "NuSVCCV": "model_selection.tuning.nu_svc_cv",
    "NuSVR": "estimators.svr",
    "OneClassSVM": "estimators.one_class",
    "OneClassSVMCV": "model_selection.tuning.one_class_cv",
    "QuantileSVR": "estimators.quantile_svr",
    "SVC": "estimators.svc",
    "SVCCV": "model_selection.tuning.svc_cv",
    "SVR": "estimators.svr",
    "SVRCV": "model_selection.tuning.svr_cv",
    "UnscaledDataWarning": "estimators._scales",
}
# Packages that are found as attributes without an import of their own.
_PACKAGES = (
    "cells", "data", "dual", "estimators", "gram", "inspection", "kernels", "model_selection", "persistence",
    "solvers",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    """A public name or package that is not imported yet."""
    if name in _MODULES:
        value = getattr(import_module(f"maxmargin.{_MODULES[name]}"), name)
        globals()[name] = value
        return value
    if name in _PACKAGES:
        return import_module(f"maxmargin.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """Names of the module, with those that are not imported yet."""
    return sorted({*globals(), *__all__, *_PACKAGES})
