"""The documentation: every block of code runs, every link leads somewhere, and the site builds."""

import ast
import contextlib
import doctest
import inspect
import io
import os
import re
import shlex
import subprocess
import sys
import traceback
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest
import sklearn.svm

import maxmargin
from maxmargin.solvers import registry

ROOT = Path(__file__).parents[1]
HOOKS = ROOT / "docs" / "hooks"
sys.path.insert(0, str(HOOKS))
import blocks as markdown  # noqa: E402
import formulas  # noqa: E402

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]
# Estimators that the tables of docs/sklearn.md have a column for.
COMPARED = ["SVC", "NuSVC", "OneClassSVM", "SVR", "NuSVR"]
# Blocks that cannot run here, each with its reason in its title.
MOST_NOT_RUN = 7


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def run(block: markdown.Block, name: str, space: dict) -> None:
    """Run a block in `space`; one with ``>>>`` as a doctest, whose output is compared."""
    if ">>>" in block.text:
        test = doctest.DocTestParser().get_doctest(block.text, space, name, name, block.line - 1)
        test.globs = space  # not a copy: later blocks go on from here
        report = io.StringIO()
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
        if runner.run(test, out=report.write, clear_globs=False).failed:
            pytest.fail(f"{name}, the block on line {block.line}:\n{report.getvalue()}", pytrace=False)
        return
    # As many empty lines before it as on the page: tracebacks then name the page's lines.
    source = "\n" * (block.line - 1) + block.text
    try:
        exec(compile(source, name, "exec"), space)
    except Exception:
        pytest.fail(f"{name}, the block on line {block.line}:\n{traceback.format_exc()}", pytrace=False)


def run_commands(block: markdown.Block, name: str) -> None:
    """Run the commands of the library's own; others (pip, python, mkdocs) are instructions."""
    for line in block.text.replace("\\\n", " ").splitlines():
        command = line.removeprefix("$ ")
        if command.startswith("maxmargin "):
            command = f"{shlex.quote(sys.executable)} -m {command}"
            done = subprocess.run(
                command, shell=True, capture_output=True, text=True, timeout=120, check=False
            )
            if done.returncode:
                pytest.fail(f"{name}, the block on line {block.line}: {line}\n{done.stderr}", pytrace=False)


@pytest.fixture
def apart(tmp_path, monkeypatch):
    """A folder of its own, the built-in solvers only, and pictures that need no screen."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.setattr(registry, "_registered", {})  # a page may register a solver
    before = matplotlib.get_backend()
    plt.switch_backend("Agg")
    yield tmp_path
    plt.close("all")
    plt.switch_backend(before)


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_block_of_a_page_runs(page, apart):
    name, space = page.relative_to(ROOT).as_posix(), {"__name__": "__main__"}
    for block in markdown.blocks(read(page)):
        if block.language == "python" and not block.not_run:
            with (
                contextlib.redirect_stdout(io.StringIO())
                if ">>>" not in block.text
                else contextlib.nullcontext()
            ):
                run(block, name, space)
        elif block.language == "console" and not block.not_run:
            run_commands(block, name)


def test_code_is_marked_as_such_and_few_blocks_are_not_run():
    not_run = []
    for page, name in zip(PAGES, NAMES, strict=True):
        for block in markdown.blocks(read(page)):
            assert block.language in ("python", "console", "text"), f"{name}, line {block.line - 1}"
            assert ">>>" not in block.text or block.language == "python", f"{name}, line {block.line - 1}"
            if "no-run" in block.options or "ot run" in block.options:
                assert block.not_run, f'{name}, line {block.line - 1}: write title="Not run here: reason"'
                not_run.append(name)
    assert len(not_run) <= MOST_NOT_RUN, not_run


def test_a_block_that_fails_is_reported_with_its_page_and_line():
    (block,) = markdown.blocks("# A page\n\n```python\nx = 1\nassert x == 2\n```\n")
    with pytest.raises(pytest.fail.Exception, match=r"a\.md, the block on line 4(.|\n)*line 5"):
        run(block, "a.md", {})
    (block,) = markdown.blocks("# A page\n\n```python\n>>> 1 + 1\n3\n```\n")
    with pytest.raises(pytest.fail.Exception, match=r"line 4(.|\n)*Got:\n\s+2"):
        run(block, "a.md", {})


def test_blocks_of_a_page_share_their_names():
    space: dict = {}
    for block in markdown.blocks(
        "```python\nx = 1\n```\n\n```python\n>>> x += 1\n\n```\n\n```python\ny = x\n```\n"
    ):
        run(block, "a.md", space)
    assert space["y"] == 2


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_link_within_the_repository_leads_somewhere(page):
    for line, target in markdown.links(read(page)):
        if re.match(r"[a-z]+:", target):
            assert target.startswith("https:"), f"{page}, line {line}: {target}"
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), f"{page.relative_to(ROOT)}, line {line}: {target}"
        if anchor:
            assert anchor in markdown.anchors(read(there)), f"{page.relative_to(ROOT)}, line {line}: {target}"


def test_every_page_is_in_the_navigation():
    nav = read(ROOT / "mkdocs.yml").split("\nnav:\n")[1]
    for page in sorted((ROOT / "docs").rglob("*.md")):
        path = page.relative_to(ROOT / "docs").as_posix()
        assert re.search(rf"^ +- [^#\n]*: {re.escape(path)}$", nav, re.MULTILINE), path


def test_the_navigation_has_the_order_of_the_guide():
    titles = re.findall(r"^  - ([^:\n]+):", read(ROOT / "mkdocs.yml").split("\nnav:\n")[1], re.MULTILINE)
    assert titles == [
        "Ten-minute start", "Moving from scikit-learn", "Which solver when", "Papers",
        "Model selection at scale", "Adding a solver", "Precision and certificates",
        "Benchmarks, and how to repeat them", "Guides", "Reference", "Notes for developers",
    ]  # fmt: skip


@pytest.mark.parametrize("name", [n for n in maxmargin.__all__ if hasattr(sklearn.svm, n)])
def test_parameters_and_defaults_are_those_of_scikit_learn(name):
    theirs = inspect.signature(getattr(sklearn.svm, name)).parameters
    ours = inspect.signature(getattr(maxmargin, name)).parameters
    for parameter, there in theirs.items():
        if parameter == "probability" and there.default is False:
            continue  # scikit-learn before 1.8, where it was not deprecated
        assert parameter in ours, parameter
        assert ours[parameter].default == there.default, parameter


def table(section: str, name: str) -> dict[str, str]:
    """What a table of the page on scikit-learn says about an estimator: cells by the names in their rows."""
    text = read(ROOT / "docs" / "sklearn.md").split(f"## {section}\n")[1].split("\n## ")[0]
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("|")]
    column = [cell.strip() for cell in rows[0]].index(name)
    return {
        key: row[column].strip()
        for row in rows[2:]
        for key in re.findall(r"`(\w+)`", row[0])
        if row[column].strip() not in ("", "no")
    }


@pytest.mark.parametrize("name", COMPARED)
def test_the_table_of_parameters_is_complete_and_has_the_right_defaults(name):
    signature = inspect.signature(getattr(maxmargin, name)).parameters
    shown = {key: ast.literal_eval(cell) for key, cell in table("Parameters", name).items()}
    assert shown == {key: parameter.default for key, parameter in signature.items()}


@pytest.mark.parametrize("name", COMPARED)
def test_the_table_of_attributes_is_complete(name):
    X = [[0.0], [1.0], [2.0], [3.5]]
    model = getattr(maxmargin, name)(kernel="linear").fit(X, [0, 0, 1, 1])
    fitted = {key for key in dir(model) if re.fullmatch(r"[a-z]\w*_", key) and hasattr(model, key)}
    assert fitted | {"feature_names_in_"} == set(table("Attributes", name))


@pytest.mark.parametrize(
    ("tex", "html"),
    [
        (r"\tfrac12\|w\|^2", "½‖w‖<sup>2</sup>"),
        (r"u^\top K^* u", "uᵀ K<sup>∗</sup> u"),
        (r"\frac{a - b}{\|z\|^2}", "(a - b)/‖z‖<sup>2</sup>"),
        (r"0 \le \alpha_i \le 1/(\nu n)", "0 ≤ α<sub>i</sub> ≤ 1/(ν n)"),
        (r"\langle w, x\rangle < 1", "⟨w, x⟩ &lt; 1"),
    ],
)
def test_formulas_become_plain_html(tex, html):
    assert formulas.html(tex) == html


def test_the_example_of_the_formulas_holds():
    assert doctest.testmod(formulas).failed == 0


@pytest.fixture
def site(tmp_path):
    """The site: what .ci/run has built in an environment with the extra docs alone, or built here."""
    if "MAXMARGIN_SITE" in os.environ:
        return Path(os.environ["MAXMARGIN_SITE"])
    pytest.importorskip("material", reason="the extra docs is not installed")
    # Without --quiet, which would count no warnings.
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return tmp_path / "site"


def test_the_site_builds_without_warnings_and_needs_no_network(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > len(PAGES)
    for page in pages:
        fetched = re.findall(r'<(?:script|img|link|iframe)\b[^>]*(?:src|href)="(https?:[^"]*)"', read(page))
        assert not fetched, f"{page.name} fetches {fetched}"
        assert ":math:" not in read(page), page.name
    reference = read(site / "reference" / "SVC.html")
    for parameter in inspect.signature(maxmargin.SVC).parameters:
        assert f"<code>{parameter}</code>" in reference, parameter
