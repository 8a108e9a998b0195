"""The estimators of a job's nodes."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from maxmargin._sklearn import validate_parameters
from maxmargin.estimators.base import BaseSVM
from maxmargin.kernels.parts import KernelFunction
from maxmargin.model_selection.folds import kind_of
from maxmargin.model_selection.jobs import Job, SearchSetup
from maxmargin.model_selection.overrides import overridden
from maxmargin.model_selection.pipelines import pipeline_kinds, split_parameters, split_pipeline, steps_before
from maxmargin.model_selection.refusal import Refused, because
from maxmargin.model_selection.settings import key_of


@dataclass(frozen=True)
class Nodes:
    """The estimators of a job's nodes, and the steps before them in a pipeline.

    Parameters
    ----------
    before : Pipeline or None
        The steps before the estimator, with the parameters that all nodes have in common; not fitted.
    prefix : str
        Of the estimator's parameters in the pipeline.
    estimators : dict
        By node, not fitted.
    first : estimator
        That of the first node.
    kind : str
        How the kernel reads the data, see `kind_of`.
    only_c : bool
        Whether the nodes differ in nothing but C.
    """

    before: Any
    prefix: str
    estimators: dict[int, Any]
    first: Any
    kind: str
    only_c: bool

    @property
    def tol(self) -> float:
        """The smallest tolerance."""
        return float(min(estimator.tol for estimator in self.estimators.values()))


def nodes_of(setup: SearchSetup, job: Job) -> Nodes | Refused:
    """The estimators of a job, or why they cannot be trained on shared kernel matrices."""
    _, last, prefix = split_pipeline(setup.estimator)
    kind, candidates = type(last).__name__, [setup.candidates[node] for node in job.nodes]
    if not isinstance(last, BaseSVM):
        return Refused(f"{kind} keeps its own kernel matrix")
    for part in {type(last), *pipeline_kinds(setup.estimator)}:
        methods = " and ".join(overridden(part))
        if methods:
            return Refused(f"{part.__name__} overrides {methods}, so that its own methods must see the data")
    before = steps_before(setup.estimator, split_parameters(candidates[0], prefix)[0])
    if isinstance(before, Refused):
        return before
    names = set(last.get_params(deep=False))
    estimators = {}
    for node, params in zip(job.nodes, candidates, strict=True):
        _, own = split_parameters(params, prefix)
        if not names.issuperset(own):
            return Refused(f"{kind} has no parameter {', '.join(sorted(set(own) - names))}")
        estimator = copy.copy(last)  # a clone costs as much as a fit of some hundred rows
        for name, value in own.items():
            setattr(estimator, name, value)
        estimators[node] = estimator
    first = estimators[job.nodes[0]]
    only_c = all(_differ_in_nothing_but(f"{prefix}C", candidates[0], params) for params in candidates)
    invalid = invalid_parameters([first] if only_c else estimators.values())
    if invalid is not None:
        return Refused(invalid)
    kinds = {kind_of(estimator) for estimator in estimators.values()}
    if len(kinds) > 1:
        return Refused("the kernels of the chain read the data in different ways")
    if any(_may_be_indefinite(estimator) for estimator in estimators.values()):
        return Refused("the kernel may be indefinite: the start would decide which solution is found")
    if getattr(first, "break_ties", False) and first.decision_function_shape == "ovo":
        return Refused("break_ties=True with decision_function_shape='ovo'")
    return Nodes(before, prefix, estimators, first, kinds.pop(), only_c)


def invalid_parameters(estimators: Iterable[Any]) -> str | None:
    """The reason why `fit` would refuse the parameters of one of the estimators; None if it would not."""
    for estimator in estimators:
        try:
            validate_parameters(estimator)
        except ValueError as error:
            return f"a parameter is not valid ({because(error)})"
    return None


def _differ_in_nothing_but(name: str, a: dict[str, Any], b: dict[str, Any]) -> bool:
    others = (set(a) | set(b)) - {name}
    return all(other in a and other in b and key_of(a[other]) == key_of(b[other]) for other in others)


def _may_be_indefinite(estimator: Any) -> bool:
    if isinstance(estimator.kernel, KernelFunction):
        return estimator.kernel.may_be_indefinite
    return estimator.kernel == "sigmoid" or (estimator.kernel == "poly" and estimator.coef0 < 0)
