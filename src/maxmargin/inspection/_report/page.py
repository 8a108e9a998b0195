"""The page: sections in a frame with a table of contents, and the style for light, dark, small and paper."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from maxmargin.inspection._report.markup import paragraph, text

_LIGHT = """
  --paper: #f4f5f7; --card: #ffffff; --ink: #16202c; --muted: #55606d; --line: #d5dae1; --main: #1d5f9e;
  --main-rgb: 29 95 158; --on-main: #ffffff; --other: #b3560c; --note: #fff4dd; --note-line: #b97b08;
  --q0: #eef3f9; --q1: #c6dbee; --q2: #94bfdf; --q3: #5a9bcb; --q4: #2c74ae; --q5: #0b3f78;
"""
_DARK = """
  --paper: #11161d; --card: #1a212b; --ink: #e7ecf2; --muted: #a3afbd; --line: #38434f; --main: #7db9f0;
  --main-rgb: 125 185 240; --on-main: #0c131b; --other: #f0a35c; --note: #33290f; --note-line: #e0a83a;
  --q0: #1d2836; --q1: #24425f; --q2: #2f648f; --q3: #4b8cc0; --q4: #86b9e4; --q5: #d9ecfd;
"""
_STYLE = """
:root { color-scheme: light dark; LIGHT }
@media (prefers-color-scheme: dark) { :root { DARK } }
* { box-sizing: border-box; }
html { scroll-behavior: smooth; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
a { color: var(--main); }
header, main, footer { max-width: 1240px; margin: 0 auto; padding: 0 20px; }
header { padding-top: 28px; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 1.2rem; margin: 0 0 10px; }
p { margin: 0 0 10px; max-width: 75ch; overflow-wrap: break-word; }
ul { margin: 0 0 10px; padding-left: 1.2em; }
li { margin-bottom: 5px; max-width: 75ch; overflow-wrap: break-word; }
code { font-size: .92em; overflow-wrap: anywhere; }
.rows, figcaption, .remark, .caption, footer { color: var(--muted); font-size: .875rem; }
.rows { border-left: 3px solid var(--line); padding-left: 10px; }
.rows b { color: var(--ink); font-weight: 600; }
.caution { background: var(--note); border-left: 4px solid var(--note-line); padding: 8px 12px; }
main { display: grid; grid-template-columns: 200px minmax(0, 1fr); gap: 24px; align-items: start;
  padding-top: 18px; padding-bottom: 30px; }
nav { position: sticky; top: 16px; font-size: .92rem; }
nav h2 { font-size: .92rem; margin: 0 0 6px; color: var(--muted); font-weight: 600; }
nav ol { list-style: none; margin: 0; padding: 0; }
nav li { margin: 0; }
nav a { display: block; padding: 3px 0; text-decoration: none; }
nav a:hover { text-decoration: underline; }
section { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 18px 20px;
  margin-bottom: 18px; scroll-margin-top: 12px; }
.absent h2 { color: var(--muted); }
.absent p { color: var(--muted); margin: 0; }
.two { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 400px), 1fr)); gap: 18px 28px;
  align-items: start; }
.two > * { min-width: 0; }
figure { margin: 0 0 6px; }
.plot { display: block; width: 100%; max-width: 500px; height: auto; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 10px;
  margin: 14px 0 12px; }
.tiles div { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 10px 14px;
  min-width: 0; }
.tiles dt { font-size: .85rem; color: var(--muted); }
.tiles dd { margin: 0; font-size: 1.4rem; font-weight: 650; line-height: 1.25; overflow-wrap: anywhere; }
.tiles dd.remark { font-size: .82rem; font-weight: 400; }
.scroll { overflow-x: auto; max-width: 100%; margin-bottom: 10px; }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums; }
.caption { margin: 8px 0 4px; }
th, td { padding: 4px 12px 4px 0; text-align: right; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th { font-weight: 600; }
thead th { color: var(--muted); font-weight: 500; vertical-align: bottom; }
th:first-child { text-align: left; }
th span { white-space: nowrap; }
tbody th { font-weight: 500; max-width: 26ch; white-space: normal; overflow-wrap: break-word; }
tr.marked th, tr.marked td { font-weight: 700; background: rgb(var(--main-rgb) / .12); }
.words td { text-align: left; }
.words td + td { white-space: normal; }
.bars { width: 100%; }
.bars td { text-align: left; width: 100%; }
.bars th { max-width: 26ch; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.bars td, .bars th { border-bottom: 0; }
.bar { display: inline-block; position: relative; vertical-align: middle; width: calc(100% - 11.5em);
  min-width: 50px;
  height: 13px; background: rgb(var(--main-rgb) / .14); border-radius: 3px; overflow: hidden; }
.bar b, .bar i { position: absolute; left: 0; top: 0; bottom: 0; }
.bar b { background: var(--main); }
.bar i { background: repeating-linear-gradient(45deg, var(--card) 0 2px, transparent 2px 6px); }
.of-bar { margin-left: 8px; white-space: nowrap; }
.matrix { font-size: .85rem; border-collapse: separate; border-spacing: 2px; }
.matrix th, .matrix td { border: 0; padding: 4px 7px; }
.matrix td { text-align: center; min-width: 2.1em; border-radius: 3px;
  background: rgb(var(--main-rgb) / var(--p, 0)); }
.matrix td.deep { color: var(--on-main); font-weight: 600; }
.matrix td.right { outline: 1.5px solid var(--ink); outline-offset: -1.5px; }
.matrix td.zero { color: var(--muted); }
.matrix tbody th { position: sticky; left: 0; background: var(--card); max-width: 16ch; z-index: 1;
  white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
.matrix thead th { max-width: 16ch; overflow: hidden; text-overflow: ellipsis; text-align: center; }
.matrix thead th:first-child { position: sticky; left: 0; background: var(--card); text-align: left;
  z-index: 1; }
.matrix.many { font-size: .74rem; border-spacing: 1px; }
.matrix.many th, .matrix.many td { padding: 2px 3px; min-width: 1.9em; }
.matrix.tall thead th:not(:first-child) { writing-mode: vertical-rl; transform: rotate(180deg);
  max-width: none;
  max-height: 10em; text-align: left; }
footer { padding-bottom: 30px; }
@media (max-width: 860px) {
  main { grid-template-columns: minmax(0, 1fr); gap: 14px; }
  nav { position: static; }
  nav ol { display: flex; flex-wrap: wrap; gap: 0 16px; }
  header, main, footer { padding-left: 12px; padding-right: 12px; }
  section { padding: 14px 14px; }
  .tiles { grid-template-columns: repeat(auto-fit, minmax(135px, 1fr)); }
  .tiles dd { font-size: 1.2rem; }
  .bar { width: calc(100% - 9.5em); }
  .of-bar { font-size: .8rem; margin-left: 5px; }
  .bars th { max-width: 16ch; padding-right: 6px; font-size: .8rem; }
}
@page { margin: 15mm; }
@media print {
  :root { LIGHT }
  body { background: #fff; font-size: 11pt; }
  nav { display: none; }
  main { display: block; }
  section { border: 0; padding: 0; }
  figure, tr, .tiles { break-inside: avoid; }
  h2, .rows, .caption, thead { break-after: avoid; }
  .scroll { overflow: visible; }
  .matrix td, .bar, .bar b, .bar i, tr.marked th, tr.marked td { print-color-adjust: exact;
    -webkit-print-color-adjust: exact; }
}
""".replace("LIGHT", _LIGHT.strip()).replace("DARK", _DARK.strip())


@dataclass
class Section:
    """A part of the page.

    Attributes
    ----------
    name, title : str
        Its anchor and its heading.
    body : str
        HTML; empty if the section is absent.
    rows : str
        The rows that its numbers are computed on, in words.
    absent : str
        A sentence that says why there is nothing to show.
    facts : dict
        The numbers.
    narrow : bool
        Whether it may stand beside another one.
    """

    name: str
    title: str
    body: str = ""
    rows: str = ""
    absent: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    narrow: bool = False

    def html(self) -> str:
        """The section as HTML."""
        kind = ' class="absent"' if self.absent and not self.body else ""
        rows = paragraph(f"<b>Rows:</b> {text(self.rows)}", "rows") if self.rows else ""
        absent = paragraph(text(self.absent)) if self.absent else ""
        return (
            f'<section id="{self.name}" aria-labelledby="{self.name}-title"{kind}>'
            f'<h2 id="{self.name}-title">{text(self.title)}</h2>\n{rows}{absent}{self.body}\n</section>'
        )


def page(title: str, top: str, sections: Sequence[Section], foot: str) -> str:
    """The whole document; `top` and `foot` are HTML."""
    wide, narrow = ("\n".join(s.html() for s in sections if s.narrow is kind) for kind in (False, True))
    contents = "".join(f'<li><a href="#{s.name}">{text(s.title)}</a></li>' for s in sections)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{text(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<header>
<h1>{text(title)}</h1>
{top}
</header>
<main>
<nav aria-label="Contents"><h2>Contents</h2><ol>{contents}</ol></nav>
<div>
{wide}
<div class="two">
{narrow}
</div>
</div>
</main>
<footer>{foot}</footer>
</body>
</html>
"""
