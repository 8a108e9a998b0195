r"""TeX of docstrings as plain HTML, so that formulas can be read without a script.

Only what the docstrings use: symbols, sub- and superscripts, fractions and roots.

>>> html(r"\tfrac12\|w\|^2 + C\sum_i \xi_i")
'½‖w‖<sup>2</sup> + C ∑<sub>i</sub> ξ<sub>i</sub>'
"""

from __future__ import annotations

import re
from html import escape

_GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν",
    "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ", "epsilon": "ε", "Delta": "Δ",
}  # fmt: skip
_SYMBOLS = {
    "sum": " ∑", "le": " ≤ ", "ge": " ≥ ", "ne": " ≠ ", "in": " ∈ ", "cup": " ∪ ", "circ": "∘", "cdot": "·",
    "to": " → ", "leftarrow": " ← ", "Longrightarrow": " ⟹ ", "langle": "⟨", "rangle": "⟩", "|": "‖",
    "{": "{", "}": "}", "infty": "∞", "top": "ᵀ", "nabla": "∇", "emptyset": "∅", "quad": "   ",
    "qquad": "      ", ",": " ", ";": " ", " ": " ", "!": "", "left": "", "right": "", "min": "min ",
    "max": "max ", "arg": "arg ", "exp": "exp", "tanh": "tanh", "textstyle": "", "approx": " ≈ ",
    "times": "×", "pm": "±", "dots": "…", "ldots": "…", "mid": " | ", "ell": "ℓ", "sqrt": "√", "forall": "∀",
}  # fmt: skip
_TOKEN = re.compile(r"\\([A-Za-z]+|.)|([{}^_])|([^\\{}^_]+)", re.DOTALL)


def html(tex: str) -> str:
    """The formula as HTML."""
    tokens = [
        match.group(0) for match in _TOKEN.finditer(" ".join(tex.replace("&", "").replace("*", "∗").split()))
    ]
    out = _sequence(tokens)
    return re.sub(r" {2,}(?! *<br>)", lambda m: " " if len(m.group()) < 3 else "&emsp;", out).strip()


def _sequence(tokens: list[str]) -> str:
    """Consume tokens up to a closing brace, or all of them."""
    out = ""
    while tokens:
        if tokens[0] == "}":
            break
        out += _one(tokens)
    return out


def _one(tokens: list[str]) -> str:
    """Consume one thing: a group, a script, a command, or text."""
    token = tokens.pop(0)
    if token == "{":
        inside = _sequence(tokens)
        tokens[:1] = []
        return inside
    if token in "^_":
        tag, inside = ("sup" if token == "^" else "sub"), _argument(tokens)
        return inside if inside == "ᵀ" else f"<{tag}>{inside.strip()}</{tag}>"
    if not token.startswith("\\"):
        return escape(token, quote=False)
    name = token[1:]
    if name == "langle" and tokens and tokens[0].lstrip():
        tokens[0] = tokens[0].lstrip()  # the space ends the name, no more
    if name in ("frac", "tfrac", "dfrac"):
        over, under = _argument(tokens), _argument(tokens)
        return "½" if (over, under) == ("1", "2") else f"{_in_brackets(over)}/{_in_brackets(under)}"
    if name in ("text", "mathrm", "mathcal", "operatorname", "mathrel"):
        return _argument(tokens)
    if name == "\\":
        return "<br>"
    return _GREEK.get(name) or _SYMBOLS.get(name, escape(name, quote=False))


def _argument(tokens: list[str]) -> str:
    """One argument: a group, a command, or a single character."""
    while tokens and tokens[0].isspace():
        tokens.pop(0)
    if not tokens:
        return ""
    if tokens[0][0] in "{\\":
        return _one(tokens)
    text = tokens.pop(0).lstrip()
    if len(text) > 1:
        tokens.insert(0, text[1:])
    return escape(text[0], quote=False)


def _in_brackets(text: str) -> str:
    plain = re.sub(r"<[^>]*>", "", text).strip()
    return f"({text.strip()})" if re.search(r"[-+ ∑]", plain) else text.strip()
