"""The display of convergence shows the records of solvers."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC as LibSVC

from maxmargin import (
    SVC,
    AllDistancesSVC,
    CrammerSingerSVC,
    IncrementalSVC,
    L2OneClassSVM,
    NuSVC,
    OneClassSVM,
    dual,
)
from maxmargin.gram.gram import Gram
from maxmargin.inspection import TraceDisplay, Watched
from maxmargin.inspection.trace import _in_units_of_the_gap
from maxmargin.solvers import MDM, MaxMinOver, Stop

X, Y = make_moons(120, noise=0.2, random_state=0)


@pytest.fixture(scope="module")
def runs():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    gram = Gram(X, "rbf", gamma=0.5, dtype="float64", n_jobs=1)
    problem = dual.one_class_l2(80, ridge=0.1)

    def in_slices(solver):
        advance = solver.advance

        def short(state, work):
            state.left = min(state.left, 5)
            advance(state, work)

        solver.advance = short
        return solver.solve(problem, gram, stop=Stop(1e-2))

    return {"maxminover": in_slices(MaxMinOver()), "mdm": in_slices(MDM())}


@pytest.mark.parametrize(
    ("x", "attribute", "label"),
    [
        ("iterations", "n_iter", "iterations"),
        ("seconds", "seconds", "seconds"),
        ("kernel_calls", "n_kernel_calls", "kernel values used"),
    ],
)
def test_lines_are_the_records(runs, x, attribute, label):
    display = TraceDisplay.from_solution(runs, x=x)
    assert [line.get_label() for line in display.lines_] == list(runs)
    for line, run in zip(display.lines_, runs.values(), strict=True):
        records = [r for r in run.trace if getattr(r, attribute) > 0 and r.violation > 0]
        assert len(records) > 3
        np.testing.assert_array_equal(line.get_xdata(), [getattr(r, attribute) for r in records])
        np.testing.assert_array_equal(line.get_ydata(), [r.violation for r in records])
    ax = display.ax_
    assert (ax.get_xscale(), ax.get_yscale(), ax.get_xlabel()) == ("log", "log", label)
    assert ax.get_ylabel() == "KKT violation"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == list(runs)
    assert len({line.get_linestyle() for line in display.lines_}) == 2
    assert display.bound_ is None and display.figure_ is ax.figure


def test_the_objective_is_drawn_above_the_lowest(runs):
    display = TraceDisplay.from_solution(runs, y="objective")
    lowest = min(run.trace[-1].objective for run in runs.values())
    for line, run in zip(display.lines_, runs.values(), strict=True):
        expected = [r.objective - lowest for r in run.trace if r.n_iter > 0 and r.objective > lowest]
        np.testing.assert_allclose(line.get_ydata(), expected)


def test_the_gap_bounds_the_distance_to_the_minimum(runs):
    display = TraceDisplay.from_solution(runs["maxminover"], y="gap")
    run = runs["maxminover"]
    best = min(r.objective - r.gap for r in runs.values())
    (line,) = display.lines_
    records = [r for r in run.trace if r.n_iter > 0]
    np.testing.assert_allclose(line.get_ydata(), [r.objective - run.objective + run.gap for r in records])
    assert best <= min(r.objective for r in records)
    assert line.get_ydata()[-1] == pytest.approx(run.gap)
    assert [text.get_text() for text in display.legend_.get_texts()] == ["records of the run"]
    assert display.plot(legend=False).ax_.get_legend() is None


def test_the_bound_touches_the_curves_from_above(runs):
    display = TraceDisplay.from_solution(runs["maxminover"], bound=True)
    (line,) = display.lines_
    t, values = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
    ratio = values * np.sqrt(t) / display.constant
    assert ratio.max() == pytest.approx(1.0)
    np.testing.assert_allclose(
        display.bound_.get_ydata() * np.sqrt(display.bound_.get_xdata()), display.constant
    )
    assert [text.get_text() for text in display.legend_.get_texts()] == [
        "records of the run",
        r"$c/\sqrt{t}$",
    ]


def test_a_long_name_of_an_option_takes_the_place_of_ours(runs):
    display = TraceDisplay.from_solution(runs, linewidth=3, c="red")
    assert {(line.get_color(), line.get_linewidth()) for line in display.lines_} == {("red", 3)}


def test_given_axes_and_options_are_used(runs):
    _, ax = plt.subplots()
    display = TraceDisplay.from_solution(runs, ax=ax, color="black", lw=3)
    assert display.ax_ is ax
    assert {(line.get_color(), line.get_linewidth()) for line in display.lines_} == {("black", 3)}


def test_a_run_without_any_step_is_an_empty_line():
    gram = Gram([[1.0], [2.0]], kernel="linear", dtype="float64")
    run = MaxMinOver().solve(dual.one_class_l2(2, ridge=1.0), gram, stop=Stop(max_iter=0))
    display = TraceDisplay.from_solution(run, bound=True)
    assert len(display.lines_[0].get_xdata()) == 0 and display.bound_ is None


def test_wrong_arguments_are_refused(runs):
    with pytest.raises(ValueError, match="x must be one of iterations, seconds, kernel_calls, got 'steps'"):
        TraceDisplay.from_solution(runs, x="steps")
    with pytest.raises(ValueError, match="violation, objective, gap, relative_gap, got 'loss'"):
        TraceDisplay.from_solution(runs, y="loss")
    with pytest.raises(ValueError, match="needs x='iterations'"):
        TraceDisplay.from_solution(runs, x="seconds", bound=True)
    with pytest.raises(ValueError, match="solution is empty"):
        TraceDisplay.from_solution({})
    with pytest.raises(TypeError, match="A Solution is needed, got 3 for 'a'"):
        TraceDisplay.from_solution({"a": 3})


# -- estimators ------------------------------------------------------------------------------


def test_the_records_of_estimators_are_drawn_by_label():
    fitted = {name: SVC(solver=Watched(name), n_jobs=1).fit(X, Y) for name in ("smo", "smo-first-order")}
    display = TraceDisplay.from_estimator(fitted, x="kernel_calls")
    assert [line.get_label() for line in display.lines_] == list(fitted)
    for line, one in zip(display.lines_, fitted.values(), strict=True):
        records = [r for r in one.trace_[0] if r.n_kernel_calls > 0 and r.violation > 0]
        np.testing.assert_array_equal(line.get_xdata(), [r.n_kernel_calls for r in records])
        np.testing.assert_array_equal(line.get_ydata(), [r.violation for r in records])
    looks = {(line.get_marker(), str(line.get_linestyle())) for line in display.lines_}
    assert len({marker for marker, _ in looks}) == len({style for _, style in looks}) == 2
    assert not {"", "None"} & {marker for marker, _ in looks}


@pytest.mark.parametrize(
    "make",
    [
        lambda **k: SVC(**k),
        lambda **k: SVC(loss="squared_hinge", **k),
        lambda **k: SVC(loss="squared_hinge", solver=Watched("mdm"), **k),
        lambda **k: SVC(bias="penalised", **k),
        lambda **k: SVC(loss="squared_hinge", bias="penalised", solver=Watched("mdm"), **k),
        lambda **k: NuSVC(**k),
        lambda **k: OneClassSVM(**k),
        lambda **k: L2OneClassSVM(C=100.0, **k),
        lambda **k: AllDistancesSVC(**k),
        lambda **k: CrammerSingerSVC(**k),
    ],
    ids=[
        "hinge",
        "squared",
        "hulls",
        "penalised",
        "one hull",
        "nu",
        "one-class",
        "l2",
        "all-distances",
        "crammer-singer",
    ],
)
def test_the_gap_of_an_estimator_ends_at_its_dual_gap_and_bounds_the_distance_to_the_optimum(make):
    def watched(**more):
        model = make(**more)
        return model if isinstance(model.solver, Watched) else model.set_params(solver=Watched(model.solver))

    model = watched(tol=1e-2).fit(X, Y)
    (line,) = TraceDisplay.from_estimator(model, y="gap").lines_
    bounds = np.asarray(line.get_ydata())
    assert bounds[-1] == pytest.approx(float(np.ravel(model.dual_gap_)[0]), rel=1e-6)
    (line,) = TraceDisplay.from_estimator(model, y="relative_gap").lines_
    assert line.get_ydata()[-1] == pytest.approx(float(np.ravel(model.relative_gap_)[0]), rel=1e-6)
    # Of the same problem solved tightly the end lies below all that was drawn, by no more than the bound.
    best = watched(tol=1e-9).fit(X, Y)
    both = TraceDisplay.from_estimator({"loose": model, "tight": best}, y="objective")
    distance = np.asarray(both.lines_[0].get_ydata())
    assert len(distance) > 3
    assert (distance <= bounds[: len(distance)] * (1 + 1e-6)).all()


@pytest.mark.parametrize(
    ("model", "ridge", "linear"),
    [
        (SVC(C=2.0), 0.0, 1.0),
        (SVC(C=2.0, loss="squared_hinge", solver="smo"), 0.25, 1.0),
        (SVC(C=2.0, loss="squared_hinge", solver="mdm"), 0.25, 1.0),
        (OneClassSVM(nu=0.3), 0.0, 0.0),
        (L2OneClassSVM(C=2.0), 0.5, 1.0),
    ],
)
def test_objectives_are_those_of_the_coefficients(model, ridge, linear):
    model.set_params(gamma=1.0, tol=1e-8).fit(X, Y)
    coef = model.dual_coef_[0]
    matrix = rbf_kernel(X[model.support_], gamma=1.0) + ridge * np.eye(len(coef))
    value = 0.5 * coef @ matrix @ coef - linear * np.abs(coef).sum()
    ends = _in_units_of_the_gap(model, np.array([model.trace_[0][-1].objective]))
    np.testing.assert_allclose(ends, value, rtol=1e-6)


def test_the_machine_with_the_most_iterations_is_drawn_or_that_asked_for():
    iris = load_iris(return_X_y=True)
    model = make_pipeline(StandardScaler(), SVC(solver=Watched("smo"))).fit(*iris)
    traces = model[-1].trace_
    longest = int(np.argmax([trace[-1].n_iter for trace in traces]))
    assert len({trace[-1].n_iter for trace in traces}) > 1
    for machine, expected in ((None, longest), (0, 0), (2, 2)):
        (line,) = TraceDisplay.from_estimator(model, machine=machine).lines_
        assert line.get_xdata()[-1] == traces[expected][-1].n_iter
    with pytest.raises(ValueError, match="machine must be one of 0 to 2, got 3"):
        TraceDisplay.from_estimator(model, machine=3)


def test_estimators_without_a_trace_are_refused():
    with pytest.raises(NotFittedError):
        TraceDisplay.from_estimator(SVC())
    for model in (LibSVC(), IncrementalSVC()):
        with pytest.raises(TypeError, match=f"{type(model).__name__} has no trace_"):
            TraceDisplay.from_estimator(model.fit(X, Y))
    with pytest.raises(ValueError, match="estimator is empty"):
        TraceDisplay.from_estimator({})
    iris = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"different numbers of binary problems, \[1, 3\]"):
        TraceDisplay.from_estimator({"a": SVC().fit(X, Y), "b": SVC().fit(*iris)})
