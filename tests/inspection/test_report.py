"""Reports: what is on the page, which rows it is about, and that it is safe and complete."""

import io
import re
import sys
import warnings
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, make_blobs, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    accuracy_score,
    brier_score_loss,
    confusion_matrix,
    log_loss,
    r2_score,
    roc_auc_score,
)
from sklearn.model_selection import GridSearchCV, GroupKFold, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC as OfSklearn

from maxmargin import (
    SVC,
    SVCCV,
    SVR,
    SVRCV,
    AllDistancesSVC,
    CrammerSingerSVC,
    IncrementalSVC,
    L2OneClassSVM,
    NuSVC,
    NuSVCCV,
    NuSVR,
    OneClassSVM,
    OneClassSVMCV,
)
from maxmargin.inspection import Report, report
from maxmargin.inspection._report.measures import wilson
from maxmargin.model_selection import SVMSearchCV
from maxmargin.persistence import load, save

SECTIONS = [
    "search", "learning", "confusion", "roc", "calibration", "importance", "support", "certificate",
    "timings", "versions",
]  # fmt: skip
IRIS = load_iris(return_X_y=True)
MOONS = make_moons(160, noise=0.3, random_state=0)
LINE = (np.linspace(0, 6, 90)[:, None], np.sin(np.linspace(0, 6, 90)) + 0.1 * np.cos(np.arange(90)))


def outliers():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(100, 2)), rng.uniform(-8, 8, size=(12, 2))])
    return X, np.repeat([1, -1], [100, 12])


# Titles of the figures, by section.
TITLES = {
    "search": ["Scores over C and gamma", "Scores over C"],
    "learning": ["Scores over the number of training rows"],
    "calibration": ["Probabilities and what was observed"],
    "roc": ["ROC: rates of true and false positives"],
    "predictions": ["Predicted and true values"],
    "residuals": ["Errors over predicted values"],
    "values": ["How often decision values occur"],
}


@pytest.fixture(scope="module")
def tuned():
    bunch = load_breast_cancer()
    X, y = pd.DataFrame(bunch.data, columns=bunch.feature_names), bunch.target_names[bunch.target]
    tuner = SVCCV().fit(X, y)
    return tuner, X, y, report(tuner, X, y)


class Checker(HTMLParser):
    """Whether tags are balanced, and which attributes there are."""

    VOID = ("meta", "br", "link", "img")

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.open, self.ids, self.tags, self.links, self.words = [], [], [], [], []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    def values(self, *names):
        return [a[name] for _, a in self.tags for name in names if name in a]


# -- the page -----------------------------------------------------------------------------------------


def test_a_page_is_well_formed_and_loads_nothing(tuned):
    html = tuned[-1].html
    page = Checker(html)
    ids = page.values("id")
    assert len(set(ids)) == len(ids)
    references = page.values("href", "xlink:href", "src", "srcset", "action", "data")
    assert all(target.startswith("#") and target[1:] in ids for target in references)
    assert all(name in ids for name in re.findall(r"url\(#([^)]*)\)", html))
    assert not re.search(r"https?:|//[a-z]|@import|url\((?!#)", html)
    assert not {"script", "link", "img", "iframe", "form"} & {tag for tag, _ in page.tags}
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]


def test_a_page_has_a_title_a_language_and_descriptions_of_its_figures(tuned):
    page = Checker(tuned[-1].html)
    assert page.tags[0] == ("html", {"lang": "en"})
    pictures = [attributes for tag, attributes in page.tags if tag == "svg"]
    assert pictures and all(a["role"] == "img" and len(a["aria-label"]) > 20 for a in pictures)
    assert [tag for tag, _ in page.tags].count("h1") == [tag for tag, _ in page.tags].count("title") == 1
    assert "Report on SVCCV" in page.words


def test_a_page_is_light_and_dark_and_fits_small_screens_and_paper(tuned):
    html = tuned[-1].html
    dark = re.search(r"@media \(prefers-color-scheme: dark\) { :root {(.*?)}", html, re.DOTALL)[1]
    light = re.search(r":root { color-scheme: light dark;(.*?)}", html, re.DOTALL)[1]
    names = re.compile(r"(--[\w-]+):")
    assert set(names.findall(light)) == set(names.findall(dark))
    used = set(re.findall(r"var\((--[\w-]+)", html)) - {"--p"}
    assert used <= set(names.findall(light))
    assert "@media print" in html and "max-width: 860px" in html and 'name="viewport"' in html
    # No colour of the figures is fixed.
    assert not re.search(r"#0b0[ab]|(fill|stroke): #", "".join(tuned[-1].figures.values()))


def test_every_figure_has_a_title_names_of_its_axes_and_a_legend(tuned):
    for name, svg in tuned[-1].figures.items():
        words = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
        assert f'id="{name}-legend_1"' in svg, name
        assert any(title in words for title in TITLES[name]), (name, words)


def test_contrast_of_text_is_sufficient(tuned):
    def luminance(colour):
        rgb = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
        rgb = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        return rgb @ [0.2126, 0.7152, 0.0722]

    themes = re.findall(r"(--paper: #.*?)}", tuned[-1].html, re.DOTALL)
    assert len(themes) >= 2
    for theme in themes:
        colours = dict(re.findall(r"(--[\w]+): (#[0-9a-f]{6})", theme))
        for text in ("--ink", "--muted", "--main", "--other"):
            for ground in ("--card", "--paper"):
                a, b = sorted([luminance(colours[text]), luminance(colours[ground])])
                assert (b + 0.05) / (a + 0.05) >= 4.4, (text, ground)


def test_texts_of_the_user_are_escaped():
    bad = "<script>alert('x')</script>\"&$\\frac$"
    X = pd.DataFrame(IRIS[0], columns=[bad, f"{bad}2", "a$b$c", "$"])
    y = np.array([bad, "b<i>", "$c"])[IRIS[1]]
    made = report(SVCCV().fit(X, y), X, y, title=bad)
    page = Checker(made.html)
    assert not {"script", "i", "iframe"} & {tag for tag, a in page.tags if "style" not in a}
    assert bad in page.words and "<script>" not in made.html
    assert "<script" not in made._repr_html_()


@pytest.mark.parametrize("name", SECTIONS)
def test_every_section_is_there_and_says_its_rows(tuned, name):
    html, facts = tuned[-1].html, tuned[-1].facts
    part = re.search(rf'<section id="{name}".*?</section>', html, re.DOTALL)[0]
    assert f'<a href="#{name}">' in html and facts[name]["available"]
    assert name == "versions" or "<b>Rows:</b>" in part


def test_the_same_model_gives_the_same_page_but_for_times(tuned):
    tuner, X, y, made = tuned
    again = report(tuner, X, y)
    assert again.figures == made.figures
    without = [
        re.sub(r'<section id="timings".*?</section>', "", r.html, flags=re.DOTALL) for r in (made, again)
    ]
    assert without[0] == without[1]


def test_settings_of_matplotlib_neither_matter_nor_change(tuned):
    import matplotlib

    tuner, X, y, made = tuned
    with matplotlib.rc_context({"font.size": 30, "axes.facecolor": "red", "svg.fonttype": "path"}):
        before = dict(matplotlib.rcParams)
        assert report(tuner, X, y).figures == made.figures
        assert dict(matplotlib.rcParams) == before


def test_a_report_is_written_shown_and_printed(tmp_path, tuned):
    made = tuned[-1]
    made.save(tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == made.html
    stream = io.BytesIO()
    made.save(stream)
    assert stream.getvalue().decode() == made.html
    assert made._repr_html_().startswith("<iframe srcdoc=") and "SVC" in repr(made)
    small = report(SVC().fit(*MOONS), *MOONS, tmp_path / "b.html")
    assert isinstance(small, Report) and (tmp_path / "b.html").exists()


# -- numbers ------------------------------------------------------------------------------------------


def test_numbers_of_a_tuner_are_those_of_its_held_out_rows(tuned):
    tuner, _, y, made = tuned
    held_out, predicted = y[tuner.held_out_rows_], tuner.held_out_predictions_
    assert made.facts["rows"]["kind"] == "held-out" and made.facts["rows"]["trained"]
    assert made.facts["score"]["accuracy"] == accuracy_score(held_out, predicted)
    np.testing.assert_array_equal(made.facts["confusion"]["matrix"], confusion_matrix(held_out, predicted))
    assert made.facts["search"]["tried"] == len(tuner.path_)
    assert made.facts["search"]["best_params"] == tuner.best_params_
    assert made.facts["search"]["best_score"] == tuner.best_score_
    last = tuner.best_estimator_[-1]
    assert made.facts["support"]["support_vectors"] == len(last.support_)
    assert made.facts["certificate"]["relative_gap"] == last.relative_gap_.max()
    low, high = wilson(int(np.sum(held_out == predicted)), len(y))
    assert f"95 % interval {100 * low:.1f} % to {100 * high:.1f} %" in made.html
    assert made.facts["roc"]["mean_area"] > 0.98 and made.facts["calibration"]["brier"] < 0.04


def test_numbers_of_new_rows_are_those_of_scikit_learn():
    X, X_new, y, y_new = train_test_split(*load_breast_cancer(return_X_y=True), random_state=0)
    tuner = SVCCV().fit(X, y)
    facts = report(tuner, X_new, y_new, max_time=2).facts
    proba = tuner.predict_proba(X_new)
    assert facts["rows"]["kind"] == "new" and not facts["rows"]["trained"]
    assert facts["score"]["accuracy"] == pytest.approx(tuner.score(X_new, y_new))
    assert facts["roc"]["mean_area"] == pytest.approx(roc_auc_score(y_new, tuner.decision_function(X_new)))
    assert facts["calibration"]["brier"] == pytest.approx(brier_score_loss(y_new, proba[:, 1]))
    assert facts["calibration"]["log_loss"] == pytest.approx(log_loss(y_new, proba))
    assert facts["support"]["by_class"]["0"] == tuner.best_estimator_[-1].n_support_[0]


def test_numbers_of_several_classes_do_not_depend_on_the_shape_of_decision_values():
    X, X_new, y, y_new = train_test_split(*IRIS, random_state=0)
    one = report(SVC().fit(X, y), X_new, y_new).facts
    other = report(SVC(decision_function_shape="ovo").fit(X, y), X_new, y_new).facts
    areas = roc_auc_score(
        y_new[:, None] == np.arange(3), SVC().fit(X, y).decision_function(X_new), average=None
    )
    assert list(one["roc"]["areas"].values()) == pytest.approx(areas.tolist())
    assert one["roc"]["areas"] == other["roc"]["areas"]


def test_a_regression_of_several_targets_is_refused():
    X = np.arange(12.0)[:, None]
    with pytest.raises(ValueError, match="one target, and the model predicts 2"):
        report(SVR().fit(X, np.column_stack([X, -X])), X, X[:, 0])


def test_numbers_of_a_regression():
    X, y = load_diabetes(return_X_y=True)
    tuner = SVRCV().fit(X, y)
    made = report(tuner, X, y)
    held_out = y[tuner.held_out_rows_]
    assert made.facts["score"]["r2"] == pytest.approx(r2_score(held_out, tuner.held_out_predictions_))
    assert {"predictions", "residuals", "learning", "search"} == set(made.figures)
    assert "A regression has no" in made.facts["roc"]["reason"]
    new = report(tuner, X[:50], y[:50], rows="new").facts
    assert new["score"]["r2"] == pytest.approx(tuner.score(X[:50], y[:50]))


def test_the_interval_contains_the_share_and_shrinks_with_rows():
    assert wilson(90, 100) == pytest.approx((0.8256, 0.9448), abs=1e-3)
    assert np.diff(wilson(9, 10)) > np.diff(wilson(900, 1000))
    assert wilson(10, 10)[1] == pytest.approx(1.0) and wilson(0, 10)[0] == 0.0


# -- which rows ---------------------------------------------------------------------------------------


def test_training_rows_are_not_scored_by_their_own_model():
    X, y = make_moons(200, noise=0.5, random_state=0)
    model = SVC(C=1e4, gamma=100.0).fit(X, y)
    assert model.score(X, y) == 1.0
    in_order = report(model, X, y).facts
    order = np.random.default_rng(0).permutation(200)
    shuffled = report(model, X[order], y[order]).facts
    for facts in (in_order, shuffled):
        assert facts["rows"]["trained"] and facts["rows"]["kind"] == "held-out"
        assert facts["score"]["accuracy"] < 0.9
    assert report(model, X, y, rows="new").facts["score"]["accuracy"] == 1.0
    fresh = make_moons(50, noise=0.5, random_state=1)
    assert report(model, *fresh).facts["rows"]["kind"] == "new"
    assert report(model, *fresh, rows="training").facts["rows"]["kind"] == "held-out"


def test_held_out_probabilities_come_from_calibrators_that_have_not_seen_them():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 5)), rng.integers(0, 2, 120)  # nothing to learn
    tuner = SVCCV(calibrate="isotonic").fit(X, y)
    facts = report(tuner, X, y).facts
    assert facts["calibration"]["log_loss"] > 0.68


def test_folds_that_need_groups_are_not_replaced_by_others():
    X, y = MOONS
    search = GridSearchCV(SVC(), {"C": [1, 10]}, cv=GroupKFold(4)).fit(X, y, groups=np.arange(160) // 8)
    made = report(search, X, y)
    assert made.facts["rows"]["kind"] == "training" and "folds of the search" in made.facts["rows"]["caution"]
    assert 'class="caution"' in made.html


def test_folds_are_those_of_the_search():
    X, y = MOONS
    search = GridSearchCV(SVC(), {"C": [1, 10]}, cv=3).fit(X, y)
    facts = report(search, X, y).facts
    assert "(3 folds)" in facts["confusion"]["rows_in_words"]
    assert facts["score"]["accuracy"] == pytest.approx(
        search.best_score_, abs=1e-3
    )  # folds differ by one row
    splits = list(StratifiedKFold(4, shuffle=True, random_state=3).split(X, y))
    search = GridSearchCV(SVC(), {"C": [1, 10]}, cv=splits).fit(X, y)
    assert report(search, X, y).facts["score"]["accuracy"] == pytest.approx(search.best_score_)
    assert report(search, X[:40], y[:40], rows="new").facts["learning"]["available"]


def test_labels_may_be_of_any_kind():
    X, y = MOONS
    for labels in (
        pd.Series(np.array(["no", "yes"])[y]),
        pd.Series(np.array(["no", "yes"])[y], dtype="category"),
        y.astype(bool),
        y.tolist(),
        2 * y - 1,
    ):
        made = report(SVCCV(refine=0).fit(X, labels), X, labels)
        assert made.facts["calibration"]["available"] and made.facts["roc"]["mean_area"] > 0.8


def test_a_model_that_cannot_be_compared_with_the_rows_says_so():
    model = SVC(kernel=lambda a, b: a @ b.T).fit(*MOONS)
    facts = report(model, *MOONS).facts
    assert "cannot be known" in facts["rows"]["reason"] and facts["rows"]["kind"] == "held-out"
    assert report(model, MOONS[0][:50], MOONS[1][:50]).facts["rows"]["kind"] == "new"


def test_without_time_optional_parts_say_so():
    X, y = make_moons(900, noise=0.3, random_state=0)
    facts = report(SVC().fit(X, y), X, y, max_time=0).facts
    assert "max_time" in facts["learning"]["reason"] and "max_time" in facts["importance"]["reason"]
    assert facts["rows"]["kind"] == "training" and "max_time" in facts["rows"]["caution"]


def test_an_interrupted_fit_ends_the_report():
    class Stopped(SVC):
        def fit(self, X, y):
            super().fit(X, y)
            if len(X) < 160:
                warnings.warn("The solver ended with status 'interrupted'", ConvergenceWarning, stacklevel=2)
            return self

    model = Stopped().fit(*MOONS)
    before = warnings.showwarning
    with pytest.raises(KeyboardInterrupt):
        report(model, *MOONS)
    assert warnings.showwarning is before


def test_parts_are_announced_before_they_begin():
    parts = []
    report(SVC().fit(*MOONS), *MOONS, progress=parts.append)
    assert parts == ["predictions", "importance of features", "learning curve", "figures"]


# -- kinds of models and data -------------------------------------------------------------------------

TWO = (IRIS[0][:100], IRIS[1][:100])


@pytest.mark.parametrize(
    ("model", "data"),
    [
        (SVC(C=np.inf, kernel="linear"), TWO),
        (SVC(loss="squared_hinge"), IRIS),
        (NuSVC(nu=0.2), IRIS),
        (AllDistancesSVC(), IRIS),
        (CrammerSingerSVC(), IRIS),
        (IncrementalSVC(), TWO),
        (OfSklearn(), IRIS),
        (SVR(), LINE),
        (NuSVR(), LINE),
        (OneClassSVM(nu=0.2), outliers()),
        (L2OneClassSVM(), outliers()),
        (make_pipeline(StandardScaler(), SVC()), IRIS),
        (NuSVCCV(refine=0), IRIS),
        (OneClassSVMCV(scoring="roc_auc", train_on="inliers"), outliers()),
        (SVMSearchCV(SVC(), {"C": [1, 10, 100], "gamma": [0.1, 1.0]}, calibrate="sigmoid"), MOONS),
        (SVMSearchCV(SVC(), {"kernel": ["linear", "rbf"]}), MOONS),
        (GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [1, 10, 100]}, cv=3), MOONS),
        (GridSearchCV(SVC(), {"C": [1, 10]}, scoring=["accuracy", "f1"], refit="f1"), MOONS),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_model_has_a_page(model, data):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        made = report(model.fit(*data), *data)
    Checker(made.html)
    for name in SECTIONS:
        facts = made.facts[name]
        assert facts["available"] or len(facts["reason"]) > 20, name
        assert f'<section id="{name}"' in made.html
    assert made.facts["rows"]["kind"] == "held-out"
    assert made.facts["score"]


def test_a_loaded_model_has_all_but_the_search(tuned):
    tuner, X, y, _ = tuned
    file = io.BytesIO()
    save(tuner, file)
    file.seek(0)
    made = report(load(file), X, y)
    assert "model file" in made.facts["search"]["reason"] and made.facts["rows"]["kind"] == "held-out"
    assert made.facts["calibration"]["available"] and made.facts["certificate"]["status"] == "solved"
    assert made.facts["importance"]["names"][0] in X.columns


def test_outliers_need_no_labels():
    X, _ = outliers()
    made = report(OneClassSVM(nu=0.2).fit(X), X)
    assert "values" in made.figures and 0.1 < made.facts["values"]["share_of_outliers"] < 0.4
    assert "no labels" in made.facts["confusion"]["reason"]


def test_sparse_rows_and_many_features_skip_importances():
    X, y = make_blobs(80, n_features=130, centers=2, random_state=0)
    assert "130" in report(SVC().fit(X, y), X, y).facts["importance"]["reason"]
    S = sp.csr_array(np.where(np.abs(X) > 5, X, 0.0))
    facts = report(SVC(kernel="linear").fit(S, y), S, y).facts
    assert "sparse" in facts["importance"]["reason"] and facts["rows"]["trained"]


def test_many_classes_stay_readable():
    X, y = make_blobs(520, centers=26, random_state=0)
    names = np.array([chr(65 + k) for k in range(26)])
    made = report(SVC().fit(X, names[y]), X, names[y])
    assert 'class="matrix many"' in made.html and made.facts["confusion"]["matrix"].shape == (26, 26)
    X, y = make_blobs(450, centers=45, random_state=0)
    made = report(SVC().fit(X, y), X, y, max_time=3)
    assert 'class="matrix' not in made.html and "Most frequent confusions" in made.html


def test_few_rows_give_a_page_that_says_so():
    X, y = np.array([[0.0], [1.0], [2.0]]), np.array(["a", "b", "b"])
    made = report(SVC().fit(X, y), X, y)
    assert "too few" in made.facts["rows"]["caution"] and made.facts["rows"]["kind"] == "training"


def test_a_fit_that_was_not_solved_is_noticed():
    with pytest.warns(ConvergenceWarning):
        model = SVC(max_iter=1).fit(*MOONS)
    made = report(model, *MOONS)
    assert made.facts["certificate"]["status"] == "max_iter"
    assert "max_iter" in made.facts["advice"][0]


def test_the_edge_of_a_grid_is_noticed():
    search = SVMSearchCV(SVC(kernel="linear"), {"C": [1e-6, 1e-5, 1e-4]}).fit(
        *load_breast_cancer(return_X_y=True)
    )
    assert any(
        "edge" in line for line in report(search, *load_breast_cancer(return_X_y=True)).facts["advice"]
    )


# -- bad input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "X", "y", "message"),
    [
        (SVC(), *IRIS, "not fitted"),
        (SVC, *IRIS, "fitted estimator"),
        ("model", *IRIS, "fitted estimator"),
        (LogisticRegression(max_iter=500).fit(*IRIS), *IRIS, "no support vectors"),
        (SVC().fit(*IRIS), IRIS[0], None, "needs the targets"),
        (SVC().fit(*IRIS), IRIS[0], IRIS[1][:-1], "inconsistent"),
        (SVC().fit(*IRIS), IRIS[0][:, :3], IRIS[1], "3 features"),
        (SVC().fit(*IRIS), IRIS[0][:0], IRIS[1][:0], "no rows"),
        (SVC().fit(*IRIS), IRIS[0][0], IRIS[1], "rows and columns"),
        (SVC().fit(*IRIS), IRIS[0], IRIS[1] + 1, "label 3"),
        (SVR().fit(*LINE), LINE[0], np.full(90, np.nan), "finite numbers"),
        (OneClassSVM().fit(IRIS[0]), *IRIS, "1 for inliers"),
        (GridSearchCV(SVC(), {"C": [1, 2]}, refit=False).fit(*IRIS), *IRIS, "refit"),
    ],
)
def test_input_that_does_not_suit_is_refused(tmp_path, model, X, y, message):
    with pytest.raises(ValueError, match=message):
        report(model, X, y, tmp_path / "a.html")
    assert not list(tmp_path.iterdir())


def test_options_that_do_not_suit_are_refused():
    model = SVC().fit(*IRIS)
    with pytest.raises(ValueError, match="rows must be one of 'auto'"):
        report(model, *IRIS, rows="old")
    with pytest.raises(ValueError, match="max_time"):
        report(model, *IRIS, max_time=-1)


def test_without_matplotlib_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=r"A report needs matplotlib.*maxmargin\[plot\]"):
        report(SVC().fit(*IRIS), *IRIS)
