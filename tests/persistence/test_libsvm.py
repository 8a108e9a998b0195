import ctypes
import io
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_iris, make_classification, make_friedman1
from sklearn.preprocessing import minmax_scale

from maxmargin import (
    SVC,
    SVR,
    AllDistancesSVC,
    IncrementalSVC,
    L2OneClassSVM,
    NuSVC,
    NuSVR,
    OneClassSVM,
    QuantileSVR,
)
from maxmargin.model_selection import SVMSearchCV
from maxmargin.persistence import ModelFileError, load, load_libsvm, save, save_libsvm
from maxmargin.persistence.libsvm import permuted

KERNELS = {"linear": 0, "poly": 1, "rbf": 2, "sigmoid": 3, "precomputed": 4}


def problem(n_classes, labels=None, seed=0):
    X, y = make_classification(
        160, 12, n_informative=6, n_classes=n_classes, n_clusters_per_class=1, class_sep=0.5,
        flip_y=0.2, random_state=seed,
    )  # fmt: skip
    X = minmax_scale(X)
    X[X < 0.3] = 0.0  # LIBSVM's files are sparse
    labels = np.arange(n_classes) if labels is None else np.array(labels)
    return X[:100], labels[y[:100]], X[100:]


def nodes(K):
    """Rows of a kernel matrix as LIBSVM wants them, with a serial number first."""
    return [[i + 1, *row] for i, row in enumerate(K.tolist())]


def as_nodes(X, kernel):
    if kernel == "precomputed":
        return [dict(enumerate(row)) for row in nodes(X)]
    return [{i + 1: v for i, v in enumerate(row) if v} for row in np.asarray(X).tolist()]


def text_of(model):
    file = io.BytesIO()
    save_libsvm(model, file)
    return file.getvalue()


def read(text, **options):
    return load_libsvm(io.BytesIO(text if isinstance(text, bytes) else text.encode()), **options)


def svmutil():
    return pytest.importorskip("libsvm.svmutil", reason="LIBSVM's own Python package")


def their_values(model, X, kernel):
    """Labels and values of LIBSVM: a column for each pair of its labels, positive for the first.

    Its svm_predict of svmutil has room for one value only where a nu_svc model has several.
    """
    svm = pytest.importorskip("libsvm.svm", reason="LIBSVM's own Python package")
    forms = svm.svm_forms
    single = model.get_svm_type() in (forms.ONE_CLASS, forms.EPSILON_SVR, forms.NU_SVR)
    k = model.get_nr_class()
    n_values = 1 if single else k * (k - 1) // 2
    labels, values = [], []
    for row in as_nodes(X, kernel):
        node, _ = svm.gen_svm_nodearray(row, isKernel=kernel == "precomputed")
        buffer = (ctypes.c_double * n_values)()
        labels.append(svm.libsvm.svm_predict_values(model, node, buffer))
        values.append(list(buffer))
    return np.array(labels), np.array(values)


def close(model, mine, theirs):
    """To twelve digits of the largest sum that a value may be the small difference of."""
    size = np.abs(model.dual_coef_).sum()
    np.testing.assert_allclose(mine, theirs, rtol=1e-12, atol=1e-13 * size)


def our_pairs(model, X, labels):
    """Our values of the pairs (i, j) of LIBSVM's labels, positive for i."""
    values = model._pair_values(X)
    index = {label: c for c, label in enumerate(model.classes_)}
    order = np.array([index[label] for label in labels])
    if len(order) == 2:
        return values * (1.0 if order[0] == 1 else -1.0)
    from maxmargin.estimators._votes import reordered

    return reordered(values, order)


@pytest.mark.parametrize("kernel", list(KERNELS))
@pytest.mark.parametrize(("svm_type", "n_classes"), [(0, 2), (0, 5), (1, 2), (1, 5), (2, 2)])
def test_a_model_of_libsvm_predicts_here_what_it_predicts_there(tmp_path, kernel, svm_type, n_classes):
    util = svmutil()
    X, y, Z = problem(n_classes, [7, -3, 5, 0, 2][:n_classes])  # order of appearance is not ascending
    K, L = (X @ X.T, Z @ X.T) if kernel == "precomputed" else (X, Z)
    option = f"-s {svm_type} -t {KERNELS[kernel]} -g 0.7 -r 0.5 -d 2 -c 3 -n 0.2 -q"
    model = util.svm_train(y.tolist(), as_nodes(K, kernel), option)
    path = tmp_path / "theirs.model"
    util.svm_save_model(str(path), model)
    model = util.svm_load_model(str(path))  # what it writes is rounded
    labels, values = their_values(model, L, kernel)
    ours = load_libsvm(path, n_features=L.shape[1])
    np.testing.assert_array_equal(ours.predict(L), labels)
    inputs = [L] if kernel == "precomputed" else [L, sp.csr_matrix(L)]
    for given in inputs:
        mine = (
            ours.decision_function(given)[:, None]
            if svm_type == 2
            else our_pairs(ours, given, model.get_labels())
        )
        close(ours, mine, values)


@pytest.mark.parametrize("kernel", list(KERNELS))
@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("make", [SVC, NuSVC, OneClassSVM, L2OneClassSVM, IncrementalSVC])
def test_a_model_of_ours_predicts_in_libsvm_what_it_predicts_here(tmp_path, kernel, n_classes, make):
    if make is IncrementalSVC and kernel == "precomputed":
        pytest.skip("kernels of features only")
    if make is L2OneClassSVM and kernel == "sigmoid":
        pytest.skip("this kernel does not have the data on one side")
    util = svmutil()
    X, y, Z = problem(n_classes, [7, -3, 5, 0, 2][:n_classes])
    K, L = (X @ X.T, Z @ X.T) if kernel == "precomputed" else (X, Z)
    options = {"nu": 0.2} if make is NuSVC else {}
    ours = make(kernel=kernel, gamma=0.7, coef0=0.5, degree=2, **options)
    ours = ours.fit(K) if make in (OneClassSVM, L2OneClassSVM) else ours.fit(K, y)
    path = tmp_path / "ours.model"
    save_libsvm(ours, path)
    model = util.svm_load_model(str(path))
    labels, values = their_values(model, L, kernel)
    np.testing.assert_array_equal(ours.predict(L), labels)
    if make in (SVC, NuSVC, IncrementalSVC):
        mine = our_pairs(ours, L, model.get_labels())
    else:
        mine = ours.decision_function(L)[:, None]
    close(ours, mine, values)


def targets(seed=0):
    X, y = make_friedman1(160, n_features=8, noise=0.5, random_state=seed)
    X[X < 0.3] = 0.0
    return X[:100], y[:100], X[100:]


def test_one_quantile_becomes_a_regression_that_predicts_the_same_and_several_are_refused(tmp_path):
    X, y = make_friedman1(80, random_state=0)
    save_libsvm(QuantileSVR(quantile=0.8).fit(X, y), tmp_path / "model")
    other = load_libsvm(tmp_path / "model", n_features=X.shape[1])
    assert type(other) is SVR
    np.testing.assert_allclose(other.predict(X), QuantileSVR(quantile=0.8).fit(X, y).predict(X), rtol=1e-12)
    with pytest.raises(ValueError, match="this one predicts 2"):
        save_libsvm(QuantileSVR(quantiles=[0.1, 0.9]).fit(X, y), io.BytesIO())


def test_a_model_of_several_targets_is_refused():
    model = SVR().fit([[0.0], [1.0], [2.0]], [[0.0, 1.0], [1.0, 1.0], [4.0, 2.0]])
    with pytest.raises(ValueError, match="this one predicts 2: train a model for each"):
        save_libsvm(model, io.BytesIO())


@pytest.mark.parametrize("kernel", list(KERNELS))
@pytest.mark.parametrize(("svm_type", "make"), [(3, SVR), (4, NuSVR)])
def test_a_regression_of_libsvm_predicts_here_what_it_predicts_there(tmp_path, kernel, svm_type, make):
    util = svmutil()
    X, y, Z = targets()
    K, L = (X @ X.T, Z @ X.T) if kernel == "precomputed" else (X, Z)
    option = f"-s {svm_type} -t {KERNELS[kernel]} -g 0.7 -r 0.5 -d 2 -c 3 -n 0.3 -p 0.2 -q"
    model = util.svm_train(y.tolist(), as_nodes(K, kernel), option)
    path = tmp_path / "theirs.model"
    util.svm_save_model(str(path), model)
    predicted, values = their_values(util.svm_load_model(str(path)), L, kernel)
    np.testing.assert_array_equal(predicted, values[:, 0])
    ours = load_libsvm(path, n_features=L.shape[1])
    assert type(ours) is make and not hasattr(ours, "offset_")
    for given in [L] if kernel == "precomputed" else [L, sp.csr_matrix(L)]:
        close(ours, ours.predict(given), predicted)


@pytest.mark.parametrize("kernel", list(KERNELS))
@pytest.mark.parametrize(
    ("model", "svm_type"),
    [
        (SVR(C=3.0, epsilon=0.2), "epsilon_svr"),
        (SVR(C=3.0, loss="squared_epsilon_insensitive"), "epsilon_svr"),
        (NuSVR(C=3.0, nu=0.3), "nu_svr"),
    ],
    ids=["SVR", "squared SVR", "NuSVR"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")  # sigmoid is not definite
def test_a_regression_of_ours_predicts_in_libsvm_what_it_predicts_here(tmp_path, kernel, model, svm_type):
    util = svmutil()
    X, y, Z = targets()
    K, L = (X @ X.T, Z @ X.T) if kernel == "precomputed" else (X, Z)
    model.set_params(kernel=kernel, gamma=0.7, coef0=0.5, degree=2).fit(K, y)
    path = tmp_path / "ours.model"
    save_libsvm(model, path)
    assert path.read_text().startswith(f"svm_type {svm_type}\n")
    predicted, _ = their_values(util.svm_load_model(str(path)), L, kernel)
    close(model, model.predict(L), predicted)
    again = load_libsvm(path, n_features=L.shape[1])
    assert type(again) is type(model) and text_of(again) == path.read_bytes()
    close(model, again.predict(L), model.predict(L))


def test_probabilities_of_a_regression_are_read_over(tmp_path):
    util = svmutil()
    X, y, Z = targets()
    for svm_type in (3, 4):
        model = util.svm_train(y.tolist(), as_nodes(X, "rbf"), f"-s {svm_type} -g 0.7 -b 1 -q")
        util.svm_save_model(str(tmp_path / "b.model"), model)
        assert b"probA" in (tmp_path / "b.model").read_bytes()
        predicted, _ = their_values(util.svm_load_model(str(tmp_path / "b.model")), Z, "rbf")
        ours = load_libsvm(tmp_path / "b.model", n_features=X.shape[1])
        close(ours, ours.predict(Z), predicted)


def test_the_tube_of_a_nu_regression_is_not_in_the_file_but_a_fit_finds_it_again():
    X, y, Z = targets()
    fitted = NuSVR(C=3.0).fit(X, y)
    model = read(text_of(fitted), n_features=X.shape[1])
    assert np.isnan(model.epsilon_) and model.status_ == "unknown" and model.C == 1.0
    file = io.BytesIO()
    save(model, file)  # the native format keeps even that
    file.seek(0)
    again = load(file)
    assert np.isnan(again.epsilon_)
    np.testing.assert_array_equal(again.predict(Z), model.predict(Z))
    assert again.set_params(C=3.0).fit(X, y).epsilon_ == pytest.approx(fitted.epsilon_)


def test_a_regression_without_support_vectors_survives():
    X, y, Z = targets()
    model = SVR(epsilon=100.0).fit(X, y)
    assert len(model.support_) == 0
    np.testing.assert_array_equal(read(text_of(model), n_features=X.shape[1]).predict(Z), model.predict(Z))


def test_ties_of_votes_are_broken_in_the_order_of_the_file():
    X, y, _ = problem(5)
    Z = np.random.default_rng(0).random((500, 12))
    model = SVC(C=10.0, gamma=3.0).fit(X, y)
    votes = model.predict(Z)
    order = np.array([4, 2, 0, 3, 1])
    lines = text_of(model).decode().splitlines()
    coef, values, rows = permuted(model.dual_coef_, model.intercept_, model.n_support_, order)
    head = [line for line in lines[: lines.index("SV")] if line.split()[0] not in ("rho", "label", "nr_sv")]
    head += ["rho " + " ".join(f"{-v:.17g}" for v in values), "label " + " ".join(map(str, order))]
    head += ["nr_sv " + " ".join(map(str, model.n_support_[order])), "SV"]
    body = [
        " ".join(f"{v:.17g}" for v in coef[:, r])
        + " "
        + " ".join(lines[lines.index("SV") + 1 + row].split()[4:])
        for r, row in enumerate(rows)
    ]
    shuffled = read("\n".join(head + body) + "\n", n_features=X.shape[1])
    np.testing.assert_allclose(shuffled._pair_values(Z), model._pair_values(Z), rtol=1e-10, atol=1e-12)
    wins = np.zeros((len(Z), 5), int)
    pairs = [(a, b) for a in range(5) for b in range(a + 1, 5)]
    for (a, b), value in zip(pairs, model._pair_values(Z).T, strict=True):
        wins[:, a] += value > 0
        wins[:, b] += value <= 0
    expected = order[np.argmax(wins[:, order], axis=1)]
    assert (expected != votes).any()  # there are ties
    np.testing.assert_array_equal(shuffled.predict(Z), expected)
    again = io.BytesIO()
    save(shuffled, again)
    again.seek(0)
    np.testing.assert_array_equal(load(again).predict(Z), expected)
    shuffled.fit(X, y)
    assert not hasattr(shuffled, "_vote_order")


@pytest.mark.parametrize("make", [SVC, NuSVC])
@pytest.mark.parametrize("kernel", list(KERNELS))
def test_what_is_written_and_read_predicts_the_same(make, kernel):
    X, y, Z = problem(3)
    K, L = (X @ X.T, Z @ X.T) if kernel == "precomputed" else (X, Z)
    model = make(kernel=kernel).fit(K, y) if make is SVC else make(nu=0.2, kernel=kernel).fit(K, y)
    text = text_of(model)
    again = read(text, n_features=K.shape[1])
    assert type(again) is make and text_of(again) == text
    close(model, again.decision_function(L), model.decision_function(L))
    np.testing.assert_array_equal(again.n_support_, model.n_support_)
    if kernel == "linear":
        np.testing.assert_allclose(again.coef_.toarray(), model.coef_, atol=1e-13)


def test_labels_that_are_whole_floats_are_written_as_integers():
    X, y, Z = problem(2, [-1.0, 1.0])
    model = SVC().fit(X, y)
    again = read(text_of(model), n_features=X.shape[1])
    assert again.classes_.tolist() == [-1, 1]
    np.testing.assert_array_equal(again.predict(Z), model.predict(Z))


@pytest.mark.parametrize("labels", [["a", "b"], [False, True], [0, 2**31]])
def test_labels_that_libsvm_cannot_have_are_refused(labels):
    X, y, _ = problem(2)
    with pytest.raises(ValueError, match="integers of 32 bits"):
        text_of(SVC().fit(X, np.array(labels)[y]))


def test_what_libsvm_has_no_model_for_is_refused():
    X, y, _ = problem(2)
    with pytest.raises(ValueError, match="laplacian"):
        text_of(SVC(kernel="laplacian").fit(X, y))
    with pytest.raises(ValueError, match="a function"):
        text_of(SVC(kernel=lambda a, b: a @ b.T).fit(X, y))
    with pytest.raises(TypeError, match="AllDistancesSVC cannot be stored"):
        text_of(AllDistancesSVC().fit(X, y))
    with pytest.raises(ValueError, match="one class only"):
        text_of(IncrementalSVC().partial_fit(X[:3], [1, 1, 1]))


def test_a_search_is_written_as_its_best_estimator():
    X, y, Z = problem(2)
    search = SVMSearchCV(SVC(), {"C": [0.1, 1.0]}).fit(X, y)
    again = read(text_of(search), n_features=X.shape[1])
    np.testing.assert_array_equal(again.predict(Z), search.predict(Z))


def test_the_file_tells_nothing_of_training():
    X, y = load_iris(return_X_y=True)
    model = read(text_of(SVC(C=7.0).fit(X, y)))
    assert model.C == 1.0 and model.status_ == "unknown" and np.isnan(model.dual_gap_).all()
    assert np.isnan(model.relative_gap_).all() and np.shape(model.relative_gap_) == np.shape(model.dual_gap_)
    assert model.fit(X, y).status_ == "solved"


@pytest.mark.parametrize("k", [2, 3, 5])
def test_probabilities_are_those_of_libsvm_in_both_directions(tmp_path, k):
    util = svmutil()
    X, y, Z = problem(k)
    model = util.svm_train(y.tolist(), as_nodes(X, "rbf"), "-g 0.7 -b 1 -q")
    util.svm_save_model(str(tmp_path / "b.model"), model)
    assert b"probA" in (tmp_path / "b.model").read_bytes()
    model = util.svm_load_model(str(tmp_path / "b.model"))
    labels = their_values(model, Z, "rbf")[0]  # without -b: by votes
    ours = load_libsvm(tmp_path / "b.model", n_features=12)
    np.testing.assert_array_equal(ours.predict(Z), labels)
    by_label = np.argsort(model.get_labels())
    theirs = np.array(util.svm_predict([], as_nodes(Z, "rbf"), model, "-b 1 -q")[2])[:, by_label]
    np.testing.assert_allclose(ours.predict_proba(Z), theirs, atol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        ours = SVC(gamma=0.7, probability=True).fit(X, y)
    for model in (ours, load_libsvm(tmp_path / "b.model", n_features=12)):
        save_libsvm(model, tmp_path / "c.model")
        written = util.svm_load_model(str(tmp_path / "c.model"))
        by_label = np.argsort(written.get_labels())
        theirs = np.array(util.svm_predict([], as_nodes(Z, "rbf"), written, "-b 1 -q")[2])[:, by_label]
        np.testing.assert_allclose(model.predict_proba(Z), theirs, atol=1e-9)


@pytest.mark.parametrize("line", ["probA 1 2", "probA 1", "probB x", "probA nan"])
def test_wrong_probabilities_are_refused(line):
    with pytest.raises(ModelFileError):
        read((GOOD.replace("label", line + "\nlabel")).encode())


GOOD = """svm_type c_svc
kernel_type rbf
gamma 0.5
nr_class 2
total_sv 2
rho 0.25
label 1 -1
nr_sv 1 1
SV
1 1:0.5 3:1
-1 2:1
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("svm_type c_svc", "svm_type quantile_svr", "line 1: svm_type is 'quantile_svr'"),
        ("svm_type c_svc", "svm_type epsilon_svr", "line 9: a model of type epsilon_svr has no labels"),
        ("svm_type c_svc", "svm_kind c_svc", "line 1: unknown key 'svm_kind'"),
        ("kernel_type rbf", "kernel_type spline", "line 2: kernel_type is 'spline'"),
        ("gamma 0.5", "gamma nan", "line 3: 'nan' is not a finite number"),
        ("gamma 0.5", "gamma 1_0", "line 3: '1_0' is not a finite number"),
        ("gamma 0.5", "gamma -1", "line 3: gamma is negative"),
        ("gamma 0.5", "gamma 1 2", "line 3: there should be one value"),
        ("gamma 0.5", "gamma 1\ngamma 2", "line 4: gamma is given twice"),
        ("gamma 0.5\n", "", "line 8: there was no line with gamma"),
        ("nr_class 2", "nr_class 3", "rho has 1 values"),
        ("nr_class 2", "nr_class 1000000000", "rho has 1 values"),
        ("total_sv 2", "total_sv 3", "add up to total_sv"),
        ("label 1 -1", "label 1 1", "different values"),
        ("label 1 -1", "label 1 99999999999", "line 7: 99999999999 is out of range|is not an integer"),
        ("label 1 -1", "label a b", "line 7: 'a' is not an integer"),
        ("SV\n", "SVs\n", "unknown key 'SVs'"),
        ("1 1:0.5 3:1\n", "", "line 10: the file ends after 1 of 2"),
        ("3:1", "1:1", "line 10: the index 1 does not come after 1"),
        ("3:1", "0:1", "line 10: 0 is out of range"),
        ("3:1", "3:inf", "line 10: 'inf' is not a finite number"),
        ("3:1", "3", "line 10: '3' is not of the form"),
        ("3:1", "4294967297:1", "line 10: 4294967297 is out of range"),
        ("-1 2:1\n", "-1 2:1\n-1 2:1\n", "line 12: there is more"),
        ("-1 2:1\n", "\n", "line 11: there are fewer than 1"),
    ],
)
def test_malformed_text_gives_an_error_with_the_line(old, new, message):
    assert old in GOOD
    with pytest.raises(ModelFileError, match=message):
        read(GOOD.replace(old, new))


def test_too_few_features_are_told():
    assert read(GOOD).n_features_in_ == 3
    assert read(GOOD, n_features=9).n_features_in_ == 9
    with pytest.raises(ModelFileError, match="it has the index 3, and n_features is 2"):
        read(GOOD, n_features=2)


def test_a_text_stream_is_refused():
    with pytest.raises(TypeError, match="binary"):
        load_libsvm(io.StringIO(GOOD))


def test_ten_classes_and_sparse_rows_survive():
    X, y = load_digits(return_X_y=True)
    model = SVC(gamma=1e-3).fit(sp.csr_matrix(X[:600]), y[:600])
    again = read(text_of(model), n_features=64)
    np.testing.assert_array_equal(again.predict(X[600:]), model.predict(X[600:]))
    np.testing.assert_array_equal(again.predict(sp.csr_matrix(X[600:])), model.predict(X[600:]))
