"""Put the figures of benchmarks/results into README, changelog and pages.

    python benchmarks/quote.py             # rewrite what has changed
    python benchmarks/quote.py --check     # only print the differences; exit code 1 if there are any

A page quotes a figure with a mark right behind the number, which the rendered page does not show:

    13.3<!--peers:svc.fit.scikit-learn--> times as fast

`peers` is a file of benchmarks/results and the rest a key of figures.py. The number keeps its decimals and
its thousands separators. `<!--growth:500000.svs/-3-->` rounds to thousands. A figure that the stored run does
not have becomes "n/a". A whole table stands between the lines `<!-- table: NAME -->` and
`<!-- end of table -->` and is made by the function of that name in page_tables.py, page_tables_papers.py or
page_tables_scale.py.
"""

from __future__ import annotations

import argparse
import re
import sys
from difflib import unified_diff
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import page_tables
import page_tables_papers
import page_tables_scale
from figures import figures
from report import ROOT

TABLES = page_tables.TABLES | page_tables_papers.TABLES | page_tables_scale.TABLES
MARK = re.compile(
    r"(?P<number>-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?|n/a)"
    r"<!--(?P<file>[\w-]+):(?P<key>[^>/]+?)(?:/(?P<places>-?\d+))?-->"
)
TABLE = re.compile(
    r"(?P<start><!-- table: (?P<name>\w+) -->\n\n)(?P<body>.*?)(?P<end>\n\n<!-- end of table -->)", re.S
)


def pages() -> list[Path]:
    """All pages that may quote figures."""
    return [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]


def shown(value: float | None, like: str, places: int | None = None) -> str:
    """A value with the decimals, exponent and separators of an earlier one.

    >>> shown(13.26, "9.7"), shown(154327, "153,000", -3), shown(1.04e-11, "3e-11"), shown(None, "2")
    ('13.3', '154,000', '1e-11', 'n/a')
    """
    if value is None:
        return "n/a"
    if like == "n/a":  # no form to keep: two digits that count
        return f"{value:,.0f}" if abs(value) >= 99.5 else re.sub(r"e([+-])0", r"e\1", f"{value:.2g}")
    if "e" in like:
        digits = len(like.split("e")[0].partition(".")[2])
        mantissa, exponent = f"{value:.{digits}e}".split("e")
        return f"{mantissa}e{int(exponent)}"
    decimals = len(like.partition(".")[2])
    if places is not None:
        value, decimals = round(value, places), max(0, places)
    comma = "," if "," in like or abs(value) >= 1000 else ""
    return f"{value:{comma}.{decimals}f}"


def quoted(text: str) -> str:
    """A page with the figures and tables of the result files."""

    def number(match: re.Match[str]) -> str:
        name, key, places = match["file"], match["key"], match["places"]
        values = figures(name)
        if key not in values:
            raise KeyError(f"{match[0]}: benchmarks/figures.py has no {key!r} for {name}")
        like = match["number"]
        new = shown(values[key], like, int(places) if places else None)
        return match[0].replace(like, new, 1)

    def table(match: re.Match[str]) -> str:
        return match["start"] + TABLES[match["name"]]() + match["end"]

    return TABLE.sub(table, MARK.sub(number, text))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument(
        "--check", action="store_true", help="change nothing, exit with 1 if a figure differs"
    )
    args = parser.parse_args()
    changed = 0
    for page in pages():
        before = page.read_text(encoding="utf-8")
        after = quoted(before)
        if after == before:
            continue
        changed += 1
        name = page.relative_to(ROOT).as_posix()
        print("\n".join(unified_diff(before.splitlines(), after.splitlines(), name, name, n=0, lineterm="")))
        if not args.check:
            page.write_text(after, encoding="utf-8")
    print(f"{changed} pages {'would change' if args.check else 'changed'}.")
    sys.exit(1 if args.check and changed else 0)


if __name__ == "__main__":
    main()
