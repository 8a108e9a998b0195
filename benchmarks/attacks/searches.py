"""The part "searches": scores are those of GridSearchCV, with the same estimator and with scikit-learn's.

Scores are compared fold by fold. Where they differ the model of that node and fold is trained again, and a
difference is forgiven only as far as held-out rows are so close to the boundary that the gaps of both
solutions allow either label. Steps of pipelines may write into the rows that they get; the data of the user
must be unchanged after a search without a final fit.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.svm
from sklearn.base import clone
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    ParameterGrid,
    PredefinedSplit,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
)
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    StandardScaler,
)
from sklearn.utils.metaestimators import _safe_split

import maxmargin
from attacks.judge import judge
from attacks.outcome import Outcome, generator, place, recorded
from attacks.problems import in_parts, labels, points, spoil
from attacks.unique import gamma_of, meaningful, reach, values
from maxmargin.model_selection import SVMSearchCV

KINDS = ("SVC", "SVC", "SVC", "SVC balanced", "SVC squared", "NuSVC", "SVR", "SVR squared", "NuSVR",
         "OneClassSVM", "L2OneClassSVM", "AllDistancesSVC", "CrammerSingerSVC", "IncrementalSVC")  # fmt: skip
RIVALS = {"SVC": sklearn.svm.SVC, "SVC balanced": sklearn.svm.SVC, "NuSVC": sklearn.svm.NuSVC,
          "SVR": sklearn.svm.SVR, "NuSVR": sklearn.svm.NuSVR,
          "OneClassSVM": sklearn.svm.OneClassSVM}  # fmt: skip


def above_zero(X: Any) -> Any:
    """Truth values instead of numbers."""
    return X > 0


class Case:
    """A search: the estimator, its grid, the data, the folds and the options."""

    estimator: Any
    prefix: str  # of the SVM's parameters in the grid
    grid: dict[str, Any]

    def __init__(self, seed: int) -> None:
        rng = generator("searches", seed)
        self.kind = str(rng.choice(KINDS))
        name, _, self.variant = self.kind.partition(" ")
        self.regression = "SVR" in name
        self.outliers = "OneClass" in name
        n, d = int(rng.integers(24, 140)), int(rng.choice([1, 2, 5]))
        k = 2 if self.outliers or name == "IncrementalSVC" or rng.random() < 0.6 else 3
        X = points(rng, n, d)
        y: Any = labels(rng, X, k, rng.choice([0.05, 0.2, 0.4]))
        self.difficulty = str(
            rng.choice(["plain", "duplicates", "opposite labels", "bootstrap", "imbalance"])
        )
        X = spoil(rng, X, self.difficulty)
        if self.difficulty == "opposite labels":
            X[n // 2 : 2 * (n // 2)] = X[: n // 2]
        if self.difficulty == "imbalance":
            y[rng.random(n) < 0.7] = 0
            y[:12] = np.arange(12) % k
        if self.regression:
            y = np.sin(X).sum(axis=1) + 0.3 * rng.normal(size=n)
        elif self.outliers:
            y = np.where(y > 0, 1, -1)
        elif rng.random() < 0.25:
            y = np.array(["no", "yes", "perhaps"])[y]
        self.tol = float(rng.choice([1e-7, 1e-9]))
        self._estimator(rng, name)
        self.weight = rng.integers(1, 4, size=n).astype(float) if rng.random() < 0.2 else None
        self.y = y
        self._data(rng, X)
        self.splits = self._splits(rng, n)
        self.options: dict[str, Any] = {
            "memory": float(rng.choice([0.0, 0.05, 2000.0, 2000.0])),
            "n_jobs": int(rng.choice([1, 2])),
            "path": str(rng.choice(["auto", "auto", "up", "down", "cold"])),
            "return_train_score": bool(rng.random() < 0.2),
        }
        self.scoring = self._scoring(rng, k)
        self.refit = not isinstance(self.scoring, list) and rng.random() < 0.4
        # Numbers of their own: without these steps a seed is the case that it was before there were any.
        self._steps(generator("steps of searches", seed))

    def _steps(self, rng: Any) -> None:
        """In some cases, steps that write into the rows that they get, or whose output is not of floats."""
        if self.kernel == "precomputed" or rng.random() < 0.6:
            return
        sparse = sp.issparse(self.X)
        choices: list[tuple[Any, dict[str, Any]]] = [
            (Normalizer(copy=False), {"norm": ["l1", "max"]}),
            (Binarizer(copy=False), {"threshold": [0.0, 0.7]}),
            (MaxAbsScaler(copy=False), {"copy": [False, True]}),
            (StandardScaler(copy=False, with_mean=not sparse), {"with_std": [False, True]}),
            (StandardScaler(with_mean=not sparse), {"with_std": [False, True]}),
            (FunctionTransformer(above_zero), {}),
        ]
        steps, grid = [], {}
        for k in range(int(rng.integers(1, 3))):
            step, values = choices[int(rng.integers(len(choices)))]
            steps.append((f"step{k}", clone(step)))
            if rng.random() < 0.5:
                grid.update({f"step{k}__{name}": several for name, several in values.items()})
        own = self.grid if self.prefix else {f"svm__{key}": v for key, v in self.grid.items()}
        self.estimator, self.prefix = Pipeline([*steps, ("svm", self.machine)]), "svm__"
        self.grid = own | grid
        self.options["return_train_score"] = bool(rng.random() < 0.5)

    def _estimator(self, rng: Any, name: str) -> None:
        kernel = str(rng.choice(["rbf", "rbf", "rbf", "linear", "poly", "laplacian", "precomputed"]))
        if name == "IncrementalSVC" and kernel == "precomputed":
            kernel = "rbf"
        options: dict[str, Any] = {"kernel": kernel}
        if name != "IncrementalSVC":
            options["tol"] = self.tol
        if kernel == "poly":
            options |= {"degree": 2, "coef0": 1.0}
        grid: dict[str, Any] = {}
        if self.variant == "balanced":
            options["class_weight"] = "balanced"
        if self.variant == "squared":
            options["loss"] = "squared_hinge" if name == "SVC" else "squared_epsilon_insensitive"
        low = -4 if self.variant == "balanced" else -2
        if name in ("SVC", "SVR", "L2OneClassSVM", "CrammerSingerSVC", "IncrementalSVC"):
            grid["C"] = sorted(10 ** rng.uniform(low, 3, size=int(rng.integers(1, 4))))
        elif name == "NuSVR":
            grid["C"] = sorted(10 ** rng.uniform(-2, 1, size=int(rng.integers(1, 3))))
        if name in ("NuSVC", "NuSVR", "OneClassSVM", "AllDistancesSVC"):
            grid["nu"] = sorted(rng.choice([0.05, 0.1, 0.2, 0.3, 0.5], size=2, replace=False).tolist())
        if kernel not in ("linear", "precomputed"):
            grid["gamma"] = sorted(10 ** rng.uniform(-2, 1, size=int(rng.integers(1, 3))))
        if name == "SVR" and rng.random() < 0.4:
            grid["epsilon"] = [0.01, 0.2]
        self.kernel = kernel
        self.machine = getattr(maxmargin, name)(**options)
        self.prefix = ""
        self.grid = {key: list(map(float, v)) for key, v in grid.items()}
        self.estimator = self.machine
        if kernel != "precomputed" and rng.random() < 0.3:
            scaler = StandardScaler() if rng.random() < 0.5 else MinMaxScaler()
            self.estimator = Pipeline([("scale", scaler), ("svm", self.machine)])
            self.prefix = "svm__"
            self.grid = {f"svm__{key}": v for key, v in self.grid.items()}

    def _data(self, rng: Any, X: Any) -> None:
        self.X: Any = X
        if self.kernel == "precomputed":
            apart = ((X[:, None] - X[None]) ** 2).sum(axis=2)
            self.X = np.exp(-0.5 * apart) if rng.random() < 0.5 else X @ X.T + 1.0
        elif not self.prefix and rng.random() < 0.15:
            self.X = sp.csr_matrix(X)
            if rng.random() < 0.3:
                self.X = in_parts(rng, self.X)
        elif rng.random() < 0.1:
            self.X = X.astype(np.float32)

    def _splits(self, rng: Any, n: int) -> Any:
        stratified = not (self.regression or self.outliers)
        y = np.zeros(n) if self.outliers else self.y
        style = int(rng.integers(7))
        state = int(rng.integers(1000))
        if style == 0 or not stratified:
            cv: Any = KFold(3, shuffle=True, random_state=state)
        elif style == 1:
            cv = StratifiedKFold(4)
        elif style == 2:
            cv = StratifiedShuffleSplit(3, test_size=0.4, random_state=state)
        elif style == 3:
            cv = ShuffleSplit(3, train_size=0.6, test_size=0.2, random_state=state)
        elif style == 4:
            cv = PredefinedSplit(rng.integers(-1, 3, size=n))
        elif style == 5:
            cv = RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=state)
        else:
            cv = KFold(3, shuffle=True, random_state=state)
        splits = [(train, test) for train, test in cv.split(np.zeros((n, 1)), y)]
        if rng.random() < 0.25:  # bootstrap: training rows that come several times
            splits = [(rng.choice(train, size=len(train)), test) for train, test in splits]
        return splits

    def _scoring(self, rng: Any, k: int) -> Any:
        if self.regression:
            return [None, "r2", "neg_mean_absolute_error"][int(rng.integers(3))]
        if self.outliers:
            return "accuracy"
        several = ["accuracy", "balanced_accuracy"]
        return [None, "accuracy", "balanced_accuracy", "f1_macro", several, "roc_auc" if k == 2 else None][
            int(rng.integers(6))
        ]

    def describe(self) -> str:
        """One line."""
        weighted = " weights" if self.weight is not None else ""
        return (
            f"{self.kind} {self.difficulty} {self.estimator!r} {self.grid} scoring={self.scoring} "
            f"{self.options} X {type(self.X).__name__} {self.X.shape} {len(self.splits)} folds{weighted}"
        )

    def params(self) -> dict[str, Any]:
        """Parameters of fit."""
        return {} if self.weight is None else {f"{self.prefix}sample_weight": self.weight}


def run(seed: int) -> Outcome:
    """One search against its references."""
    case = Case(seed)
    outcome = Outcome(case.kind, case.describe())
    common = {"cv": case.splits, "scoring": case.scoring, "refit": False}
    quick = SVMSearchCV(case.estimator, case.grid, progress=False, **common, **case.options)
    quick.refit = case.refit
    found, wrong = _search(quick, case, outcome)
    common["return_train_score"] = case.options["return_train_score"]
    reference = GridSearchCV(case.estimator, case.grid, **common)
    reference.refit = found is None and case.refit  # folds may be feasible where all rows together are not
    same = Outcome("")
    slow, other = _search(reference, case, same)
    # Warnings of scikit-learn's steps, which GridSearchCV has too, are not ours.
    outcome.faults = [f for f in outcome.faults if not f.startswith("RuntimeWarning") or f not in same.faults]
    if found is None or slow is None:
        outcome.answer = "refused"
        if (found is None) != (slow is None):
            outcome.faults.append(f"SVMSearchCV: {wrong or 'scores'}; GridSearchCV: {other or 'scores'}")
        elif not isinstance(wrong, ValueError | TypeError):
            outcome.faults.append(f"crash: {place(wrong)}")
        return outcome
    outcome.answer = "scores"
    with recorded(Outcome("")):
        _compare(case, outcome, found.cv_results_, slow.cv_results_, "GridSearchCV", None)
        if case.refit:
            _refitted(case, outcome, found)
        if case.kind in RIVALS and case.kernel != "laplacian" and not outcome.faults:
            rival = rivals(case)
            theirs, _ = _search(GridSearchCV(rival, case.grid, **common), case, None)
            if theirs is not None:
                _compare(case, outcome, found.cv_results_, theirs.cv_results_, "scikit-learn's", rival)
    return outcome


def _refitted(case: Case, outcome: Outcome, search: Any) -> None:
    """The best model of a search is that of a fit with its parameters."""
    every = np.arange(len(case.y))
    fresh, machine, _ = _again(case, case.estimator, search.best_params_, every)
    best = search.best_estimator_ if not case.prefix else search.best_estimator_[-1]
    solved = all(getattr(m, "status_", "solved") == "solved" for m in (machine, best))
    if not solved or not meaningful(machine) or not meaningful(best):
        return
    rows = _prepared(case, fresh, case.X)
    gap = _gap(machine) + _gap(best) + getattr(machine, "tol", 1e-9) * float(np.abs(_coef(machine)).sum())
    near = _reach(case, machine, rows, gap)
    apart = float(np.abs(values(machine, rows) - values(best, rows)).max())
    outcome.checks += 1
    if apart > near:
        outcome.faults.append(
            f"best_estimator_ is {apart:.3g} from a fit with {search.best_params_}, not {near:.2g}"
        )


def rivals(case: Case) -> Any:
    """scikit-learn's estimator in place of ours."""
    kind = RIVALS[case.kind]
    own = case.machine.get_params()
    params = {key: own[key] for key in kind().get_params() if key in own}
    params.pop("probability", None)
    rival = kind(**params).set_params(tol=1e-7, max_iter=300_000)
    return rival if not case.prefix else clone(case.estimator).set_params(svm=rival)


def _search(search: Any, case: Case, outcome: Outcome | None) -> tuple[Any, Any]:
    given = case.X.copy()
    with recorded(outcome or Outcome("")):
        try:
            search.fit(given, case.y, **case.params())
        except Exception as error:
            return None, error
    if outcome is not None and not search.refit:
        outcome.checks += 1
        if not _equal(given, case.X):
            outcome.faults.append("X is not what it was before the search")
    return search, None


def _equal(X: Any, Z: Any) -> bool:
    """Whether two data sets have the same numbers, the sparse ones in the same places."""
    if not sp.issparse(X):
        return bool(np.array_equal(X, Z))
    parts = ("data", "indices", "indptr")
    return all(np.array_equal(getattr(X, part), getattr(Z, part)) for part in parts)


def _compare(case: Case, outcome: Outcome, ours: Any, theirs: Any, whose: str, rival: Any) -> None:
    columns = [key for key in theirs if key.startswith("split")]
    nodes = list(ParameterGrid(case.grid))
    for column in columns:
        fold = int(column[len("split") :].split("_")[0])
        metric = column.split("_", 2)[2]
        for node, params in enumerate(nodes):
            a, b = float(ours[column][node]), float(theirs[column][node])
            outcome.checks += 1
            if a == b or abs(a - b) <= 1e-9 * (1 + abs(b)) or (np.isnan(a) and np.isnan(b)):
                continue
            why = _explain(case, fold, params, a, b, metric, "_train_" in column, rival)
            if why:
                outcome.faults.append(f"{column} {params}: {a:.6g}, {whose} {b:.6g}: {why}")
                if len(outcome.faults) > 3:
                    return


def _explain(
    case: Case, fold: int, params: Any, a: float, b: float, metric: str, train_score: bool, rival: Any
) -> str:
    """Why two scores may not differ; empty if they may."""
    train, test = case.splits[fold]
    model, fitted, left = _again(case, case.estimator, params, train)
    if np.isnan(a) or np.isnan(b):
        return "" if rival is not None and np.isnan(b) else "only one of them is a number"
    if not meaningful(fitted):
        return ""  # hulls that meet: w = 0, and any label is as good
    if train_score:  # scikit-learn scores training rows as `fit` has left them
        test, X_test, y_test = train, left, case.y[train]
    else:
        X_test, y_test = _safe_split(model, case.X, case.y, test, train)
    rows = _prepared(case, model, X_test)
    if getattr(fitted, "status_", "solved") != "solved":
        return ""
    gap = _gap(fitted) + float(getattr(fitted, "tol", 1e-9)) * float(np.abs(_coef(fitted)).sum())
    off = 0.0
    if rival is not None:
        other, theirs, _ = _again(case, rival, params, train)
        X_train, y_train = _safe_split(other, case.X, case.y, train)
        X_train = _prepared(case, other, X_train)
        weight = None if case.weight is None else case.weight[train]
        matrix = np.asarray(X_train) if case.kernel == "precomputed" else None
        theirs.kernel = case.kernel
        verdicts = judge(theirs, X_train, y_train, weight, matrix=matrix)
        if any(np.isnan(v.gap) for v in verdicts):
            return ""
        gap += max(max(v.gap, 0.0) for v in verdicts)
        # LIBSVM takes any bias of the interval that is left, the end of it if a multiplier is an ulp inside.
        off = max(v.loose + (v.violation if np.isfinite(v.violation) else 1.0) for v in verdicts)
        if getattr(theirs, "fit_status_", 0):
            return ""
    near = _reach(case, fitted, rows, gap) + 4 * off
    decided = values(fitted, rows)
    if case.regression:
        spread = float(np.var(y_test)) or 1.0
        rest = float(np.abs(y_test - decided[:, 0]).mean())
        allowed = near if "absolute" in metric else (2 * near * rest + near**2) / spread
        return (
            ""
            if abs(a - b) <= allowed
            else f"targets may differ by {near:.2g} only, the score by {allowed:.2g}"
        )
    at = (np.abs(decided) <= near).any(axis=1)
    if type(fitted).__name__ in ("CrammerSingerSVC", "AllDistancesSVC") and decided.shape[1] > 1:
        best = np.sort(decided, axis=1)
        at = best[:, -1] - best[:, -2] <= 2 * near
    scorer = (case.scoring or "accuracy") if metric == "score" else metric
    weight = None if case.weight is None else case.weight[test]
    predicted = np.asarray(fitted.predict(rows))
    # scikit-learn hands sample weights to its scorers as well.
    allowed = max(
        _latitude(scorer, y_test, predicted, at, decided[:, 0], 2 * near, w, len(np.unique(case.y)))
        for w in (np.ones(len(at)), weight)
        if w is not None
    )
    if abs(a - b) <= allowed + 1e-9:
        return ""
    return (
        f"{int(at.sum())} of {len(y_test)} rows within {near:.2g} of the boundary (gap {gap:.2g}), the score "
        f"may differ by {allowed:.2g}"
    )


def _latitude(
    scorer: str, y: Any, predicted: Any, at: Any, decided: Any, apart: float, weight: Any, classes: int
) -> float:
    """How much a score of labels may change where the rows `at` may have any label of so many classes.

    For "roc_auc" values that are not further than `apart` from each other may change their order.
    """
    if scorer == "roc_auc":
        positive = y == np.unique(y)[-1]
        pairs = weight[positive][:, None] * weight[~positive]
        close = np.abs(decided[positive][:, None] - decided[~positive]) <= apart
        return float((pairs * close).sum() / max(float(pairs.sum()), 1e-300))
    if scorer == "accuracy":
        return float(np.average(at, weights=weight)) if weight.any() else 1.0
    if scorer == "balanced_accuracy":
        shares = [
            np.average(at[y == c], weights=weight[y == c]) for c in np.unique(y) if weight[y == c].any()
        ]
        return float(np.mean(shares)) if shares else 1.0
    assert scorer == "f1_macro", scorer
    least, most, certain = 0.0, 0.0, 0
    every = np.union1d(y, predicted)
    for c in every:
        true, found = y == c, predicted == c
        sure = weight[true & found & ~at].sum()
        either = weight[true].sum() + weight[found & ~at].sum()
        gained, lost = weight[true & at].sum(), weight[~true & at].sum()
        most += 2.0 * (sure + gained) / max(either + gained, 1e-300)
        least += 2.0 * sure / max(either + lost, 1e-300)
        certain += bool(true.any() or (found & ~at).any())
    # A class that only rows near the boundary are given counts in the mean, or does not.
    return float(most / max(certain, 1) - least / max(len(every), classes if at.any() else 0))


def _again(case: Case, estimator: Any, params: Any, train: Any) -> tuple[Any, Any, Any]:
    """The fitted estimator, its last step, and the training rows, into which steps may have written."""
    model = clone(estimator).set_params(**params)
    X, y = _safe_split(model, case.X, case.y, train)
    extra = {} if case.weight is None else {f"{case.prefix}sample_weight": case.weight[train]}
    model.fit(X, y, **extra)
    return model, model if not case.prefix else model[-1], X


def _prepared(case: Case, model: Any, X: Any) -> Any:
    """Rows as the last step gets them; X is left as it is."""
    if not case.prefix:
        return X
    rows = model[:-1].transform(X.copy())
    return rows.astype(np.float64) if rows.dtype == bool else rows


def _coef(model: Any) -> Any:
    coef = model.dual_coef_
    return coef.toarray() if sp.issparse(coef) else np.asarray(coef)


def _gap(model: Any) -> float:
    return float(np.max(getattr(model, "dual_gap_", 1e-12)))


def _reach(case: Case, model: Any, rows: Any, gap: float) -> float:
    if case.kernel == "precomputed":
        wide = 2 * float(np.sqrt(np.abs(np.diag(case.X)).max()))
        scale = 0.5 * float(np.abs(_coef(model)).sum()) if type(model).__name__ == "NuSVC" else 1.0
        return float(8 * np.sqrt(2 * gap) * wide * scale + 6 * model.tol * (1 + wide))
    if not hasattr(model, "tol"):
        model.tol = 1e-9
    dense = rows.toarray() if sp.issparse(rows) else np.asarray(rows)
    if sp.issparse(model.dual_coef_):
        model = _Dense(model)
    return reach(model, dense, gap)


class _Dense:
    """A model whose dual_coef_ is dense."""

    def __init__(self, model: Any) -> None:
        self.__dict__.update(model.__dict__)
        self.__class__ = type(type(model).__name__, (_Dense,), {})
        self.dual_coef_ = model.dual_coef_.toarray()
        self._gamma = gamma_of(model)
