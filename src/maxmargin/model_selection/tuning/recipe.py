"""Which parameters a tuner tries: a walk along C, then along the width, then around the best."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from maxmargin._types import Floats
from maxmargin.model_selection.tuning.surface import Setting, Surface, Walk

# Values of C, in units of the tuner, and the steps of the first stage: a decade of C, and of the width.
_LEAST, _LARGEST, _DECADE, _WIDTH = 0.1, 1e4, 10.0, 10**0.8
# The largest C of `ascend`.
_TOP = 1e5
# Widths that are tried beyond the first, each way.
_REACH = 2
# Standard errors by which a width may be worse before those beyond it are left out.
_SLACK = 0.25


@dataclass(frozen=True)
class Node:
    """A parameter combination, and its score on each fold."""

    setting: Setting
    C: float
    scores: Floats
    seconds: float = 0.0

    @cached_property
    def mean(self) -> float:
        """The mean score; -inf if a fold was not solved."""
        mean = float(np.mean(self.scores))
        return mean if np.isfinite(mean) else -np.inf

    @cached_property
    def size(self) -> float:
        """Orders models by how closely they can fit: by C times gamma, or by C."""
        return float(np.log(self.C) + (np.log(self.setting.gamma) if self.setting.gamma else 0.0))


def best_of(nodes: Iterable[Node]) -> Node:
    """The best node; of equal ones, but for rounding, the simplest."""
    return max(nodes, key=lambda node: (round(node.mean, 10), -node.size))


@dataclass
class Climb:
    """The nodes that have been tried on one surface."""

    surface: Surface
    #: Called after each node, and may raise to end the climb.
    watch: Callable[[Node], None] = lambda node: None
    #: Scores that are known from an earlier run, by the order in which nodes are tried.
    known: Callable[[], Floats | None] = lambda: None
    nodes: dict[tuple[Setting, float], Node] = field(default_factory=dict)
    _baseline: float | None = None

    def walk(self, setting: Setting, Cs: Sequence[float], patience: int | None = None) -> float:
        """Try ascending C, until `patience` in a row are no better than the best before; the best score.

        The walk goes on while all scores are the same, or none is better than that of a constant model: with
        many features, or with rare classes, predictions may not change up to a large C.
        """
        todo = [C for C in Cs if (setting, C) not in self.nodes]
        at = 0
        while at < len(todo):
            # Two at first, as one says nothing about the direction.
            some = todo[at:] if patience is None else todo[at : at + (2 if at == 0 else 1)]
            self._try(setting, some)
            at += len(some)
            tried = [self.nodes[setting, C] for C in todo[:at]]
            best = int(np.argmax([node.mean for node in tried]))
            if patience is not None and at - 1 - best >= patience and self._has_learnt(tried, tried[best]):
                break
        known = [node.mean for (other, _), node in self.nodes.items() if other == setting]
        return max(known)

    def walk_all(self, walks: Sequence[Walk]) -> None:
        """Try the C of several kernels, side by side unless scores are known from an earlier run."""
        if self.known() is not None:
            for setting, Cs in walks:
                self.walk(setting, Cs)
            return
        todo = [(setting, [C for C in Cs if (setting, C) not in self.nodes]) for setting, Cs in walks]
        todo = [(setting, Cs) for setting, Cs in todo if Cs]
        began = time.perf_counter()
        scores = self.surface.scores_of(todo)
        seconds = (time.perf_counter() - began) / max(1, sum(len(Cs) for _, Cs in todo))
        for (setting, Cs), of_walk in zip(todo, scores, strict=True):
            for C, of_node in zip(Cs, of_walk, strict=True):
                self._add(Node(setting, C, of_node, seconds))

    def _has_learnt(self, tried: Sequence[Node], best: Node) -> bool:
        """Whether scores differ, and the best one is above that of constant models by a standard error."""
        if all(node.mean == best.mean for node in tried):
            return False
        if self._baseline is None:
            self._baseline = self.surface.baseline(best.setting)
        return best.mean > self._baseline + self.error(best)

    def _try(self, setting: Setting, Cs: Sequence[float]) -> None:
        began, found = time.perf_counter(), self.known()
        if found is not None:
            self._add(Node(setting, Cs[0], found))
            Cs = Cs[1:]
            if Cs:
                self._try(setting, Cs)
            return
        scores = self.surface.scores(setting, Cs)
        seconds = (time.perf_counter() - began) / len(Cs)
        for C, of_node in zip(Cs, scores, strict=True):
            self._add(Node(setting, C, of_node, seconds))

    def _add(self, node: Node) -> None:
        self.nodes[node.setting, node.C] = node
        self.watch(node)

    @property
    def best(self) -> Node:
        """The best node so far."""
        return best_of(self.nodes.values())

    def error(self, node: Node) -> float:
        """The standard error of a node's mean score."""
        if 0.0 <= node.mean <= 1.0 and self.surface.counts_rows:
            return float(np.sqrt(node.mean * (1.0 - node.mean) / self.surface.n_rows))
        return float(np.std(node.scores) / np.sqrt(len(node.scores)))


def explore(climb: Climb, kernel: str, unit: float, C_unit: float, epsilon: float = 0.0) -> None:
    """Find the region of the best parameters in big steps, from the width 1 / `unit`."""

    def at(gamma: float) -> Setting:
        return Setting(kernel, gamma, epsilon)

    decades = C_unit * 10.0 ** np.arange(-1, 5)
    if kernel == "linear":
        climb.walk(at(0.0), decades.tolist(), patience=2)
        return
    # Other scores than the accuracy depend on fewer rows, or on their order, and fluctuate more.
    best = climb.walk(at(unit), decades.tolist(), patience=1 if climb.surface.counts_rows else 2)
    low, high = C_unit * _LEAST, C_unit * _LARGEST
    for way in (-1, 1):
        for k in range(1, _REACH + 1):
            node = best_of(node for node in climb.nodes.values() if node.setting.kernel == kernel)
            gamma = unit * _WIDTH ** (way * k)
            # The same C, and that with the same C * gamma: scores hardly change along this ridge.
            exact = np.log10(node.C / C_unit * node.setting.gamma / gamma)
            ridge = C_unit * 10.0 ** float(np.round(exact))
            pair = (node.C, ridge) if not np.isclose(ridge, node.C) else (node.C, node.C * _DECADE**-way)
            Cs = sorted({float(np.clip(C, low, high)) for C in pair})
            found = climb.walk(at(gamma), Cs)
            if way < 0 and found > best:
                while climb.nodes[at(gamma), Cs[-1]].mean >= found and Cs[-1] < high:
                    Cs.append(Cs[-1] * _DECADE)
                    found = max(found, climb.walk(at(gamma), Cs[-1:]))
            best = max(best, found)
            if found < best - _SLACK * climb.error(node):
                break


def refine(climb: Climb, node: Node, step: float = 0.5) -> None:
    """Try the neighbours of a node, `step` of the big steps away; not those off the ridge."""
    setting, C = node.setting, node.C
    small = _DECADE**step
    if not setting.gamma:
        climb.walk(setting, [C / small, C, C * small])
        return
    narrow = _WIDTH**step
    wider, narrower = setting.gamma / narrow, setting.gamma * narrow
    climb.walk_all(
        [
            (setting._replace(gamma=wider), [C, C * small]),
            (setting, [C / small, C, C * small]),
            (setting._replace(gamma=narrower), [C / small, C]),
        ]
    )


def ascend(climb: Climb, rounds: int, C_unit: float, step: float = 0.5) -> None:
    """Go to the best neighbour while it is better, for at most `rounds` steps.

    For scores that hardly fluctuate, as those of a regression: the steps of `refine` would end on a slope. A
    wider kernel may need a C that is larger by more than the inverse ratio of the widths.
    """
    small, narrow = _DECADE**step, _WIDTH**step
    for _ in range(rounds):
        before = climb.best
        setting, C = before.setting, before.C
        around = {setting.gamma: (-1, 0, 1)}
        if setting.gamma:
            around |= {setting.gamma / narrow: (0, 1, 2), setting.gamma * narrow: (-2, -1, 0)}
        most = _TOP * C_unit
        climb.walk_all(
            [
                (setting._replace(gamma=gamma), [C * small**k for k in steps if C * small**k <= most])
                for gamma, steps in around.items()
            ]
        )
        if climb.best is before:
            return
