"""The documentation: every block of code runs, every link leads somewhere, and the site builds."""

import ast
import contextlib
import doctest
import importlib.util
import inspect
import io
import os
import pkgutil
import re
import shlex
import subprocess
import sys
import traceback
import zlib
from pathlib import Path

import matplotlib
import matplotlib.pyplot as plt
import pytest
import sklearn.svm
from filelock import FileLock

import markdown_blocks as markdown
import maxmargin
from maxmargin.solvers import registry

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"

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
    """Run the commands of the library's own; others (pip, python, sphinx-build) are instructions."""
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


def entries(page: Path) -> list[str]:
    """The pages, relative to docs and without suffix, that the tables of contents of a page name."""
    found = []
    for toctree in re.findall(r"^:::\{toctree\}\n(.*?)^:::", read(page), re.DOTALL | re.MULTILINE):
        for line in filter(None, toctree.splitlines()):
            if not line.startswith(":"):
                name = re.sub(r".*<(.*)>", r"\1", line)
                found.append(os.path.relpath(page.parent / name, DOCS).replace(os.sep, "/"))
    return found


def test_every_page_is_in_the_navigation_once():
    named = sorted(entry for page in DOCS.rglob("*.md") for entry in entries(page))
    assert len(set(named)) == len(named)
    pages = {page.relative_to(DOCS).with_suffix("").as_posix() for page in DOCS.rglob("*.md")}
    assert pages - set(named) == {"index"}


def test_the_navigation_has_the_order_of_reading():
    assert entries(DOCS / "index.md") == [
        "start", "project", "sklearn", "choosing", "scaling", "guide/index", "gallery/index",
        "reference/index", "papers/index", "notes/index",
    ]  # fmt: skip


def test_no_heading_has_raw_code_in_menus():
    for page, name in zip(PAGES, NAMES, strict=True):
        assert not re.search(r"^# .*`", read(page), re.MULTILINE) or name == "README.md", name


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


def public() -> dict[str, object]:
    """Everything in the ``__all__`` of a public module, and the solvers' classes, by its full name."""
    modules = ["maxmargin"]
    for module in pkgutil.walk_packages(maxmargin.__path__, "maxmargin."):
        if not re.search(r"\._", module.name):
            modules.append(module.name)
    found = {}
    for name in modules:
        module = importlib.import_module(name)
        for key in [*getattr(module, "__all__", ()), *getattr(module, "_CLASSES", ())]:
            found[f"{name}.{key}"] = getattr(module, key)
    return found


def in_the_reference() -> list[str]:
    """The full names that the pages of the reference list."""
    names = []
    for page in sorted((DOCS / "reference").glob("*.rst")):
        module = ""
        for line in read(page).splitlines():
            if line.startswith(".. currentmodule:: "):
                module = line.split(":: ")[1]
            elif module and re.fullmatch(r"   [\w.]+", line):
                names.append(f"{module}.{line.strip()}")
    return names


def test_the_reference_has_every_public_name_and_no_other():
    pytest.importorskip("distributed")
    names, objects = in_the_reference(), public()
    assert len(set(names)) == len(names)
    known = [objects.get(name, name) for name in names]
    for name, thing in objects.items():
        assert any(thing is one for one in known), f"{name} is missing in docs/reference"
    assert set(names) <= set(objects)


def extension(name: str):
    """A module of docs/extensions."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / "extensions" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["repository", "inventories"])
def test_the_examples_of_the_extensions_hold(name):
    result = doctest.testmod(extension(name))
    assert result.attempted and not result.failed


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("see [it](../../benchmarks/results/peers.md)", "see [it](../results/peers.rst)"),
        ("see [it](../../examples/one_class.py#x)", "see [it](../gallery/one_class.rst#x)"),
        ("see [it](../precision.md#the-gap)", "see [it](../precision.md#the-gap)"),
        ("![A map](../images/a.png)", ":::{figure} ../images/a.png\n:alt: A map\n\nA map\n:::"),
        ("```python\n>>> 1\n1\n\n```\n\ntext", "```python\n>>> 1\n1\n```\n\ntext"),
        ('```python title="Not run here: slow"', "```{code-block} python\n:caption: Not run here: slow"),
    ],
)
def test_a_page_of_the_guides_is_adapted_to_the_site(text, made):
    assert extension("repository").adapted(text, "docs/guide", "guide") == made


def test_names_of_other_projects_in_docstrings_have_links(tmp_path):
    known = set()
    for site, path in extension("inventories").mapping(tmp_path).values():
        assert site.startswith("https://")
        lines = zlib.decompress(Path(path).read_bytes().split(b"\n", 4)[4]).decode().splitlines()
        known |= {line.split(" ", 1)[0] for line in lines}
    named = set()
    for file in (ROOT / "src").rglob("*.py"):
        named |= set(re.findall(r"(?<!`)`((?:sklearn|numpy|scipy|joblib)\.[\w.]+\.?\w+)`(?!`)", read(file)))
    missing = {
        name for name in named - known if name not in ("sklearn.calibration", "sklearn.isotonic", "numpy.inf")
    }
    assert named and not missing


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The site: what .ci/run has built in an environment with the extra docs alone, or built here."""
    if "MAXMARGIN_SITE" in os.environ:
        return Path(os.environ["MAXMARGIN_SITE"])
    for package in ("sphinx_gallery", "pydata_sphinx_theme", "numpydoc", "myst_parser", "sphinx_design"):
        pytest.importorskip(package, reason="the extra docs is not installed")
    # One build for all processes of the run: it also writes pages into docs.
    folder = tmp_path_factory.getbasetemp()
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    # Without the output of the examples, which have a test of their own.
    options = ["-W", "--keep-going", "-q", "-D", "sphinx_gallery_conf.plot_gallery=False"]
    build = [sys.executable, "-m", "sphinx", *options, "-d", str(folder / "doctrees"), "docs"]
    with FileLock(folder / "site.lock"):
        if not (folder / "site").exists():
            done = subprocess.run([*build, str(folder / "site")], cwd=ROOT, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr
    return folder / "site"


def test_the_site_builds_without_warnings_and_needs_no_network(site):
    pages = sorted(site.rglob("*.html"))
    assert len(pages) > len(PAGES)
    for page in pages:
        loaded = r'<(?:script|img|iframe|source)\b[^>]*src="(https?:[^"]*)"|<link\b[^>]*href="(https?:[^"]*)"'
        fetched = re.findall(loaded, read(page))
        assert not fetched, f"{page.name} fetches {fetched}"
        assert ":math:" not in read(page), page.name
    assert (site / "_static" / "mathjax" / "tex-svg.js").stat().st_size > 10**6


def test_every_link_of_the_site_leads_to_a_page_and_a_heading_of_it(site):
    anchors = {page: set(re.findall(r'\bid="([^"]+)"', read(page))) for page in site.rglob("*.html")}
    for page in anchors:
        for target in set(re.findall(r'<a\b[^>]*href="([^"]+)"', read(page))):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            there = (page.parent / path).resolve() if path else page
            assert there.exists(), f"{page.relative_to(site)}: {target}"
            if anchor and there in anchors:
                assert anchor in anchors[there], f"{page.relative_to(site)}: {target}"


def test_the_reference_has_every_public_method(site):
    data = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    known = {line.split(" ", 1)[0] for line in zlib.decompress(data).decode().splitlines()}
    objects = public()
    for name in in_the_reference():
        assert name in known, name
        if inspect.isclass(objects[name]) and not issubclass(objects[name], (Exception, tuple, str)):
            for method in vars(objects[name]):
                if not method.startswith("_") and inspect.isfunction(getattr(objects[name], method)):
                    assert f"{name}.{method}" in known, f"{name}.{method}"
    reference = read(site / "reference" / "generated" / "maxmargin.SVC.html")
    for parameter in inspect.signature(maxmargin.SVC).parameters:
        assert f"<strong>{parameter}</strong>" in reference, parameter
