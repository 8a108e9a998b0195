"""Numpydoc docstrings as Markdown: one page for each public class, one for each public module."""

from __future__ import annotations

import inspect
import re
from importlib import import_module
from typing import Any

from formulas import html

# Modules with a page of their own. The classes of the package itself have one each.
MODULES = (
    "maxmargin.model_selection",
    "maxmargin.cells",
    "maxmargin.dask",
    "maxmargin.inspection",
    "maxmargin.solvers",
    "maxmargin.dual",
    "maxmargin.gram",
    "maxmargin.kernels",
)
_ENTRIES = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "See Also")


def pages() -> dict[str, tuple[str, str]]:
    """Title and Markdown of each page, by its path below ``reference/``."""
    package = import_module("maxmargin")
    out = {}
    for name in sorted(package.__all__, key=str.lower):
        out[f"{name}.md"] = (name, f"# {name}\n\n{_member('maxmargin', name, getattr(package, name), 0)}")
    for module in MODULES:
        try:
            text = _module(module)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
            continue
        out[f"{module.removeprefix('maxmargin.')}.md"] = (module, text)
    rows = "\n".join(f"| [{title}]({path}) | {_first_line(title)} |" for path, (title, _) in out.items())
    out["index.md"] = ("Overview", f"# Reference\n\n| | |\n|---|---|\n{rows}\n")
    return out


def _first_line(title: str) -> str:
    owner = import_module(title if "." in title else "maxmargin")
    doc = inspect.getdoc(owner if "." in title else getattr(owner, title)) or ""
    return _inline(doc.strip().splitlines()[0])


def _module(name: str) -> str:
    module = import_module(name)
    public = getattr(module, "__all__", None) or [
        key
        for key, value in vars(module).items()
        if not key.startswith("_") and getattr(value, "__module__", "") == name
    ]
    public = [*public, *getattr(module, "_CLASSES", ())]  # the solvers, which are not imported before use
    parts = [f"# {name}\n\n{markdown(inspect.getdoc(module) or '')}"]
    shown: tuple[type, ...] = ()
    for key in public:
        value = getattr(module, key)
        if inspect.isclass(value) or inspect.isfunction(value):
            parts.append(f"## {key}\n\n{_member(name, key, value, 1, shown)}")
            shown += (value,) if inspect.isclass(value) else ()
    return "\n\n".join(parts)


def _member(module: str, name: str, value: Any, level: int, shown: tuple[type, ...] = ()) -> str:
    """Signature, text and methods of a class or function.

    `level` is the depth of its headings; methods of base classes that the page has `shown` are left out.
    """
    parts = [_signature(f"{module}.{name}", value), markdown(inspect.getdoc(value) or "")]
    if inspect.isclass(value):
        known = {key for base in shown if base in value.__mro__ for key in vars(base)}
        for key, method in sorted(_methods(value).items()):
            if key in known:
                continue
            doc = inspect.getdoc(method) or ""
            parts.append(f"##{'#' * level} `{key}`\n\n{_signature(key, method)}\n\n{markdown(doc)}")
    return "\n\n".join(parts)


def _methods(cls: type) -> dict[str, Any]:
    """Public methods that are written in this library; those of scikit-learn are described there."""
    found: dict[str, Any] = {}
    for base in reversed(cls.__mro__):
        if not base.__module__.startswith("maxmargin"):
            continue
        for name, value in vars(base).items():
            function = getattr(value, "__func__", value)
            if not name.startswith("_") and inspect.isfunction(function) and function.__doc__:
                found[name] = function
    return found


def _signature(name: str, value: Any) -> str:
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    empty = inspect.Parameter.empty
    parameters = [p.replace(annotation=empty) for p in signature.parameters.values()]
    if parameters and parameters[0].name in ("self", "cls"):
        del parameters[0]
    shown = str(signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty))
    if len(name + shown) > 90:
        shown = re.sub(r", (?=[\w*]+(=|,|\)|$))", ",\n    ", shown)
        shown = shown.replace("(", "(\n    ", 1).removesuffix(")") + ",\n)"
    return f"```python\n{name}{shown}\n```"


def markdown(doc: str) -> str:
    """A docstring as Markdown."""
    parts = []
    for title, lines in _sections(doc):
        body = _entries(lines) if title in _ENTRIES else _text(lines)
        parts.append(f"**{title}**\n\n{body}" if title else body)
    return "\n\n".join(parts)


def _sections(doc: str) -> list[tuple[str, list[str]]]:
    sections: list[tuple[str, list[str]]] = [("", [])]
    lines = doc.splitlines()
    skip = False
    for here, after in zip(lines, [*lines[1:], ""], strict=True):
        if skip:
            skip = False
        elif here and re.fullmatch(r"-{3,}", after) and len(after) == len(here):
            sections.append((here, []))
            skip = True
        else:
            sections[-1][1].append(here)
    return [(title, lines) for title, lines in sections if title or any(lines)]


def _entries(lines: list[str]) -> str:
    """Names with a type and a description, as a definition list."""
    out: list[str] = []
    body: list[str] = []

    def flush() -> None:
        if out:
            text = _text(inspect.cleandoc("\n".join(body)).splitlines()) or "\u00a0"
            out.append(":   " + text.replace("\n", "\n    ") + "\n")
        body.clear()

    for line in lines:
        if line and not line[0].isspace():
            flush()
            name, _, kind = line.partition(" : ")
            out.append(f"`{name}`" + (f" : *{_inline(kind)}*" if kind else ""))
        else:
            body.append(line)
    flush()
    return "\n".join(out)


def _text(lines: list[str]) -> str:
    """Paragraphs, formulas, tables and examples."""
    out: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.lstrip().startswith(">>>"):
            end = next((k for k in range(at, len(lines)) if not lines[k].strip()), len(lines))
            out += ["```python", *inspect.cleandoc("\n".join(lines[at:end])).splitlines(), "```"]
        elif line.lstrip().startswith(".. math::"):
            indent = len(line) - len(line.lstrip())
            end = at + 1
            while end < len(lines) and (not lines[end].strip() or _indent(lines[end]) > indent):
                end += 1
            tex = " ".join([line.split("::", 1)[1], *lines[at + 1 : end]])
            out += ["", " " * indent + f'<div class="formula">{html(tex)}</div>', ""]
        elif re.fullmatch(r"=+( +=+)+", line.strip()):
            rules = [k for k in range(at, len(lines)) if lines[k].strip() == line.strip()]
            end = rules[-1] + 1
            out += ["```text", *map(_without_quotes, lines[at:end]), "```"]
        else:
            end = at + 1
            while end < len(lines) and lines[end - 1].strip() and not _special(lines[end]):
                end += 1
            out.append(_inline("\n".join(lines[at:end])))
        at = end
    return "\n".join(out).strip()


def _special(line: str) -> bool:
    stripped = line.lstrip()
    return stripped.startswith((">>>", ".. math::")) or bool(re.fullmatch(r"=+( +=+)+", stripped))


def _without_quotes(line: str) -> str:
    """A line of a table without backticks; the columns stay where they are."""
    return re.sub(r"(`+)([^`]*)\1", lambda m: m[2] + 2 * len(m[1]) * " ", line).rstrip()


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _inline(text: str) -> str:
    text = re.sub(r":math:`([^`]*)`", lambda m: f'<span class="formula">{html(m.group(1))}</span>', text)
    return re.sub(r"``([^`]+)``", r"`\1`", text)
