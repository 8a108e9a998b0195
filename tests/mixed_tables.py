"""A table with columns of every kind, made for tests."""

from __future__ import annotations

import numpy as np
import pandas as pd


def mixed(n: int = 120, seed: int = 0) -> pd.DataFrame:
    """Numbers, categories, truth values, dates, text, columns of no use, and a target that they determine."""
    rng = np.random.default_rng(seed)
    age, colour = rng.normal(40, 12, n).round(1), rng.choice(["red", "green", "blue"], n)
    member = rng.random(n) < 0.5
    frame = pd.DataFrame(
        {
            "id": [f"P{k:05d}" for k in rng.permutation(10 * n)[:n]],
            "age": age,
            "colour": colour,
            "member": np.where(member, "true", "false"),
            "joined": (pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, n), "D")).strftime(
                "%d.%m.%Y"
            ),
            "empty": "",
            "constant": 3,
            "fare": rng.exponential(30, n).round(2),
        }
    )
    frame["outcome"] = np.where((age > 40) ^ (colour == "red"), "yes", "no")
    frame.loc[::9, "age"] = np.nan
    frame.loc[::11, "colour"] = ""
    return frame


def with_text(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with a column of text."""
    said = np.where(frame["outcome"] == "yes", "a very good trip", "an awfully bad journey")
    notes = [f"{text} number {k}" for k, text in enumerate(said)]
    return frame.assign(note=notes)[[*frame.columns[:-1], "note", "outcome"]]
