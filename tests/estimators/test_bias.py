"""SVC with a penalised bias, against a quadratic program without a sum and against LinearSVC."""

import pickle
import warnings
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn.svm
from scipy.optimize import minimize_scalar
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import StandardScaler

import qp
from maxmargin import SVC, dual, solvers
from maxmargin.model_selection import SVMSearchCV
from maxmargin.persistence import load, load_libsvm, save, save_libsvm, to_onnx

#: Solvers of the point of least norm of one hull.
HULLS = ["mdm", "mdm-accelerated", "npa"]
BOXES = ["batch", "smo", "smo-first-order", "rosen", "rosen-conjugate"]
LOSSES = ["hinge", "squared_hinge"]


def data(seed=0, n=60):
    """Classes that overlap, with equal points on both sides."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=n) > -0.5, 1, 0)
    X[:4], y[:4] = X[4], [0, 1, 0, 1]
    return X, y


def machine(**parameters):
    return SVC(**{"bias": "penalised", "gamma": 0.5, "C": 2.0, "tol": 1e-7, **parameters})


def signed(y):
    return np.where(y == y.max(), 1.0, -1.0)


def optimum(K, y, C, loss, weight=1.0):
    """clarabel's coefficients and optimal value, for the kernel K + 1 without a sum."""
    c = C * np.broadcast_to(weight, len(y))
    plain = dual.c_svc(y, bounds=c) if loss == "hinge" else dual.squared_c_svc(y, 0.5 / c)
    Q = K + 1.0 + np.diag(plain.ridge)
    u = qp.solve_qp(Q, plain.p, plain.lo, plain.hi, np.zeros((0, len(y))), np.zeros(0))
    return u, -qp.objective(Q, plain.p, u)


def coefficients(model, n):
    out = np.zeros(n)
    coef = model.dual_coef_
    out[model.support_] = (coef.toarray() if sp.issparse(coef) else coef)[0]
    return out


def values(u, score, y, C, loss):
    """The primal value of w = sum of u_i x_i with the best of all biases, and the dual value of u."""
    square = u @ score

    def primal(b):
        xi = np.maximum(0, 1 - y * (score + b))
        return 0.5 * (square + b * b) + C * (xi.sum() if loss == "hinge" else xi @ xi)

    best = minimize_scalar(primal, bracket=(-1.0, 1.0), tol=1e-12).fun
    ridge = 0.0 if loss == "hinge" else 0.5 / C
    return best, np.abs(u).sum() - 0.5 * (square + u.sum() ** 2 + ridge * u @ u)


# -- the optimum -------------------------------------------------------------------------------


@pytest.mark.parametrize("C", [1e-3, 2.0, 50.0])
@pytest.mark.parametrize(
    ("solver", "loss"),
    [(s, loss) for s in BOXES for loss in LOSSES] + [(s, "squared_hinge") for s in HULLS],
)
def test_every_solver_finds_the_optimum_and_its_gap_says_how_far_it_is(solver, loss, C):
    X, y = data()
    K = qp.rbf(X)
    u, value = optimum(K, signed(y), C, loss)
    model = machine(solver=solver, loss=loss, C=C, max_iter=10**6).fit(X, y)
    assert model.status_ == "solved"
    found, b = coefficients(model, len(y)), model.intercept_[0]
    assert b == pytest.approx(found.sum(), abs=1e-12 * np.abs(found).sum())  # b = sum of y alpha
    np.testing.assert_allclose(model.decision_function(X), K @ u + u.sum(), atol=1e-4)
    primal, own = values(found, K @ found, signed(y), C, loss)
    slack = 1e-9 * value
    assert own <= value + slack and value <= primal + slack
    assert primal - own <= model.dual_gap_[0] + slack
    assert model.dual_gap_[0] <= 1e-4 * value


def test_gilbert_and_maxminover_come_near_it():
    X, y = data(1, 40)
    u, _ = optimum(qp.rbf(X), signed(y), 0.2, "squared_hinge")
    for solver in ("gilbert", "maxminover"):
        model = machine(solver=solver, loss="squared_hinge", C=0.2, tol=1e-3).fit(X, y)
        assert model.status_ == "solved" and model.relative_gap_[0] < 1e-2
        np.testing.assert_allclose(coefficients(model, len(y)), u, atol=1e-2)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("loader", [load_breast_cancer, load_wine])
def test_it_is_scikit_learns_linear_svc(loader, loss):
    X, y = loader(return_X_y=True)
    X, y = StandardScaler().fit_transform(X), y == y[0]
    theirs = sklearn.svm.LinearSVC(C=0.1, loss=loss, dual=True, tol=1e-9, max_iter=10**6).fit(X, y)
    ours = SVC(C=0.1, loss=loss, bias="penalised", kernel="linear", tol=1e-8).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=1e-5)


@pytest.mark.parametrize("solver", ["auto", *HULLS])
def test_a_hard_margin_is_that_of_the_hull_with_one_more_feature(solver):
    X, y = data()
    y = (X[:, 0] > 0.2).astype(int)
    u, _ = optimum(qp.rbf(X), signed(y), 1e12, "squared_hinge")
    model = machine(C=np.inf, solver=solver, max_iter=10**6).fit(X, y)
    assert model.status_ == "solved" and model.relative_gap_[0] < 1e-5
    np.testing.assert_allclose(coefficients(model, len(y)), u, atol=1e-3 * np.abs(u).max())
    assert (signed(y) * model.decision_function(X)).min() >= 1 - 1e-6


@pytest.mark.parametrize("solver", ["auto", "mdm"])
def test_classes_that_no_hyperplane_through_the_new_origin_separates_are_infeasible(solver):
    X, y = data()  # with equal points on both sides
    with pytest.warns(ConvergenceWarning, match="no hard margin"):
        model = machine(C=np.inf, solver=solver).fit(X, y)
    assert model.status_ == "infeasible" and model.dual_gap_[0] == np.inf
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("solver", ["auto", "mdm-accelerated"])
@pytest.mark.parametrize("scale", [1e-6, 1e8])
def test_gaps_are_bounds_where_values_are_tiny_or_huge(scale, solver):
    X, y = data(2, 30)
    X = np.round(X, 3) * scale
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = SVC(
            kernel="linear", loss="squared_hinge", bias="penalised", solver=solver, max_iter=5000
        ).fit(X, y)
    found = coefficients(model, len(y))
    rows = [[Fraction(v) for v in row] for row in X.tolist()]
    w = [sum(a * row[k] for a, row in zip(map(Fraction, found), rows, strict=True)) for k in range(3)]
    score = np.array([float(sum(a * b for a, b in zip(row, w, strict=True))) for row in rows])
    primal, own = values(found, score, signed(y), 1.0, "squared_hinge")
    # Both values are float64 numbers, far larger than their difference.
    assert primal - own <= model.dual_gap_[0] * (1 + 1e-9) + 4 * np.spacing(primal)


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_and_zero_weights_are_those_of_the_quadratic_program(loss):
    X, y = data(3)
    weight = np.random.default_rng(0).uniform(0.2, 3.0, len(y))
    weight[10:15] = 0.0
    kept = weight > 0
    u, _ = optimum(qp.rbf(X[kept]), signed(y)[kept], 2.0, loss, weight[kept])
    for solver in ("auto", *(HULLS if loss == "squared_hinge" else [])):
        model = machine(loss=loss, solver=solver).fit(X, y, weight)
        found = coefficients(model, len(y))
        assert not found[~kept].any()
        np.testing.assert_allclose(found[kept].sum(), u.sum(), atol=1e-4)
        np.testing.assert_allclose(model.decision_function(X[kept]), qp.rbf(X[kept]) @ u + u.sum(), atol=1e-4)


@pytest.mark.parametrize("solver", ["auto", "mdm-accelerated"])
def test_several_classes_are_the_machines_of_their_pairs(solver):
    X, y = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[y]
    kind = {"loss": "squared_hinge", "solver": solver, "tol": 1e-8}
    model = machine(**kind, decision_function_shape="ovo").fit(X, names)
    assert model.status_ == "solved" and model.intercept_.shape == (3,)
    values = model.decision_function(X)
    for column, (a, b) in enumerate([(0, 1), (0, 2), (1, 2)]):
        pair = (y == a) | (y == b)
        u, _ = optimum(qp.rbf(X[pair]), np.where(y[pair] == a, 1.0, -1.0), 2.0, "squared_hinge")
        np.testing.assert_allclose(values[pair, column], qp.rbf(X[pair]) @ u + u.sum(), atol=1e-5)
        assert model.intercept_[column] == pytest.approx(u.sum(), abs=1e-5)


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array, np.float32])
@pytest.mark.parametrize("solver", ["auto", "mdm"])
def test_sparse_and_float32_input_give_the_same_machine(kind, solver):
    X, y = data()
    X = np.round(np.where(np.abs(X) > 0.5, X, 0.0) * 8) / 8
    plain = machine(loss="squared_hinge", solver=solver).fit(X, y)
    other = machine(loss="squared_hinge", solver=solver).fit(kind(X), y)
    np.testing.assert_allclose(
        np.ravel(other.decision_function(kind(X))), plain.decision_function(X), atol=1e-5
    )


# -- the course of training --------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", "mdm-accelerated"])
def test_a_warm_start_saves_steps_and_gives_the_same_machine(solver):
    X, y = load_iris(return_X_y=True)
    model = machine(loss="squared_hinge", solver=solver, warm_start=True).fit(X, y)
    cold, steps = model.decision_function(X), model.n_iter_.sum()
    model.fit(X, y)
    assert model.n_iter_.sum() < 0.2 * steps
    np.testing.assert_allclose(model.decision_function(X), cold, atol=1e-5)
    model.set_params(C=2.2).fit(X, y)
    np.testing.assert_allclose(
        model.decision_function(X), clone(model).fit(X, y).decision_function(X), atol=1e-5
    )


def test_neither_kind_of_bias_starts_from_the_solution_of_the_other():
    X, y = data()
    model = machine(warm_start=True).fit(X, y)
    names = set(model._solutions.starts)
    model.set_params(bias="free").fit(X, y)
    assert not names & set(model._solutions.starts)
    np.testing.assert_allclose(
        model.decision_function(X), machine(bias="free").fit(X, y).decision_function(X), atol=1e-5
    )


@pytest.mark.parametrize("solver", ["auto", "smo", "mdm-accelerated"])
def test_budgets_end_training_with_a_gap_that_holds(solver):
    X, y = data(4, 200)
    kind = {"loss": "squared_hinge", "solver": solver, "C": 100.0}
    _, value = optimum(qp.rbf(X), signed(y), 100.0, "squared_hinge")
    for budget, status in (({"max_iter": 3}, "max_iter"), ({"max_time": 0.0}, "max_time")):
        with pytest.warns(ConvergenceWarning, match=status):
            model = machine(**kind, **budget).fit(X, y)
        assert model.status_ == status
        u, ridge = coefficients(model, len(y)), 1.0 / 200.0
        own = np.abs(u).sum() - 0.5 * (u @ qp.rbf(X) @ u + u.sum() ** 2 + ridge * u @ u)
        assert value - own <= model.dual_gap_[0]


@pytest.mark.parametrize("solver", ["auto", "smo", "mdm"])
@pytest.mark.parametrize("C", [2.0, np.inf])
def test_probabilities_are_those_of_machines_trained_without_the_held_out_rows(solver, C):
    X, y = load_breast_cancer(return_X_y=True)
    X, y = StandardScaler().fit_transform(X)[:200], y[:200]
    kind = {"loss": "squared_hinge", "gamma": 0.05, "C": C, "probability": True, "tol": 1e-6}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        model, reference = (
            machine(**kind, solver=s).fit(X, y) for s in (solver, "rosen" if np.isfinite(C) else "npa")
        )
    p = model.predict_proba(X)
    assert np.mean(p.argmax(axis=1) == y) > 0.9
    np.testing.assert_allclose(p, reference.predict_proba(X), atol=0.02)


@pytest.mark.parametrize("solver", ["mdm", "gilbert", "maxminover", "npa"])
def test_hull_solvers_refuse_the_hinge_and_name_those_that_train_with_it(solver):
    with pytest.raises(ValueError, match=r"loss='squared_hinge'.*auto, batch.*smo") as caught:
        machine(solver=solver).fit(*data())
    named = str(caught.value).partition("one of the solvers ")[2].rstrip(".").split(", ")
    for name in named:
        assert machine(solver=name, tol=1e-2).fit(*data()).status_ == "solved"


def test_solvers_for_a_free_bias_only_are_refused_with_those_that_can():
    with pytest.raises(TypeError, match=r"SimpleSVM cannot take.*auto, batch.*mdm-accelerated"):
        machine(solver="simple", loss="squared_hinge").fit(*data())


def test_other_kinds_of_bias_are_refused():
    with pytest.raises(ValueError, match=r"'bias' parameter of SVC must be a str among \{.*'penalised'"):
        machine(bias="none").fit(*data())


# -- what else an SVC can do -------------------------------------------------------------------


def test_files_keep_the_machine_and_its_parameter(tmp_path):
    X, y = data()
    model = machine(loss="squared_hinge", solver="mdm").fit(X, y)
    save(model, tmp_path / "model.maxmargin")
    for again in (load(tmp_path / "model.maxmargin"), pickle.loads(pickle.dumps(model))):
        assert again.bias == "penalised"
        np.testing.assert_array_equal(again.intercept_, model.intercept_)
        np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))


@pytest.mark.parametrize("classes", [2, 3])
def test_a_file_of_libsvm_has_the_decision_function(tmp_path, classes):
    X, y = load_iris(return_X_y=True)
    X, y = X[y < classes], y[y < classes]
    model = machine(loss="squared_hinge", solver="mdm").fit(X, y)
    save_libsvm(model, tmp_path / "model")
    again = load_libsvm(tmp_path / "model", n_features=4)
    np.testing.assert_allclose(again.decision_function(X), model.decision_function(X), rtol=1e-9, atol=1e-9)


def test_an_onnx_graph_has_the_intercept():
    runtime = pytest.importorskip("onnxruntime")
    X, y = data()
    X = X.astype(np.float32)
    model = machine().fit(X, y)
    session = runtime.InferenceSession(to_onnx(model).SerializeToString())
    labels = session.run(None, {session.get_inputs()[0].name: X})[0]
    np.testing.assert_array_equal(labels, model.predict(X))


@pytest.mark.parametrize("loss", LOSSES)
def test_a_search_chooses_among_both_kinds(loss):
    X, y = data(5, 120)
    grid = {"C": [0.1, 1.0, 10.0], "bias": ["free", "penalised"]}
    ours = SVMSearchCV(machine(loss=loss), grid, cv=3).fit(X, y)
    theirs = GridSearchCV(machine(loss=loss), grid, cv=3).fit(X, y)
    np.testing.assert_allclose(
        ours.cv_results_["mean_test_score"], theirs.cv_results_["mean_test_score"], atol=1e-12
    )
    assert ours.best_params_ == theirs.best_params_


def test_names_of_solvers_are_all_known():
    assert {*HULLS, *BOXES} <= set(solvers.names())
