"""Settings of the site: ``pip install -e ".[docs]" && sphinx-build -W docs site``.

The pages are the Markdown files of this folder. The reference is made from the docstrings, the gallery from
``examples/``, which run while the site is built, and the result tables from ``benchmarks/results``.
"""

import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent / "extensions"))
import inventories

import maxmargin

ROOT = Path(__file__).parents[1]

project = "maxmargin"
author = "The maxmargin developers"
copyright = "the maxmargin developers, BSD 3-Clause licence"
version = release = maxmargin.__version__
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    # Of this folder:
    "inherited",
    "offline",
    "repository",
]
exclude_patterns = ["extensions", "gallery/*.ipynb", "gallery/*.py"]
templates_path = ["_templates"]
# A name in single backticks leads to its page where it has one, and is shown as code where it has none.
default_role = "py:obj"
nitpicky = False
smartquotes = False  # "rbf" is code
toc_object_entries_show_parents = "hide"

# Pages in Markdown.
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4

# The reference.
autodoc_typehints = "none"
autodoc_member_order = "alphabetical"
autosummary_generate = True
# Names that differ in upper and lower case only would be one file on some systems.
autosummary_filename_map = {"maxmargin.inspection.report": "maxmargin.inspection.report-function"}
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

# Links to other projects, by lists of their names that are made here: no network is needed.
intersphinx_mapping = inventories.mapping(Path(__file__).parent / "_build" / "inventories")

# Formulas: MathJax is copied into the site (`offline`).
mathjax_path = "mathjax/tex-svg.js"
mathjax3_config = {"options": {"enableMenu": False}}

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_line_continuation_character = "\\"

sphinx_gallery_conf: dict[str, Any] = {
    "examples_dirs": str(ROOT / "examples"),
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",  # every example runs
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("maxmargin",),
    "capture_repr": (),
    "reset_modules": ("matplotlib", "examples.leave_no_files"),
    "reset_modules_order": "both",
    "within_subsection_order": "examples.Order",
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 10**6,  # no times in the pages
    "write_computation_times": False,
    "download_all_examples": False,
    "plot_gallery": "True",
    "default_thumb_file": str(ROOT / "docs" / "_static" / "example.png"),
}

# Pages without a table of contents: those of results have wide tables instead.
wide = [
    "index",
    "search",
    *(f"results/{table.stem}" for table in (ROOT / "benchmarks" / "results").glob("*.md")),
]

html_theme = "pydata_sphinx_theme"
html_title = "maxmargin"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_favicon = "_static/logo.svg"
html_copy_source = False
html_show_sourcelink = False
html_context = {"default_mode": "auto"}
html_theme_options = {
    "logo": {"text": "maxmargin", "image_light": "_static/logo.svg", "image_dark": "_static/logo.svg"},
    "icon_links": [
        {
            "name": "GitHub",
            "url": "https://github.com/maxmargin/maxmargin",
            "icon": "fa-brands fa-github",
        }
    ],
    "header_links_before_dropdown": 8,
    "navbar_align": "left",
    "navbar_persistent": ["search-button"],
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc"], **{name: [] for name in wide}},
    "footer_start": ["copyright"],
    "footer_end": ["theme-version"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
# Pages without pages below them need no menu on the left.
html_sidebars = {name: [] for name in ("index", "start", "project", "sklearn", "solved", "changelog")}

# Examples print no progress and draw without a screen.
os.environ.setdefault("MPLBACKEND", "Agg")
