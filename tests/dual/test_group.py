"""The multiplier of a sum minimises the bound that the gap adds up."""

import numpy as np
import pytest

from maxmargin.dual._group import best_multiplier, gain


def bound(b, c, lo, hi, ridge, total):
    """sum_i max_v [(c_i - b) v - r_i v^2/2] + b total, each maximum at one of three places."""
    t = c - b
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = np.clip(np.where(ridge > 0, t / ridge, 0.0), lo, hi)
    each = [np.where(v == 0, 0.0, t * v - 0.5 * ridge * v * v) for v in (lo, hi, inside)]
    return float(np.max([np.where(np.isnan(e), 0.0, e) for e in each], axis=0).sum()) + b * total


def cases():
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 9))
        c = rng.normal(size=n).round(1 if seed % 2 else 6)  # with ties, and without
        lo, hi = -rng.uniform(0, 2, n), rng.uniform(0, 2, n)
        kind = rng.integers(0, 4, n)
        lo[kind == 1] = 0.0
        hi[kind == 1] = np.inf
        lo[kind == 2] = -np.inf
        ridge = np.zeros(n) if seed % 3 else np.where(rng.random(n) < 0.5, rng.uniform(0.1, 1, n), 0.0)
        v = np.clip(rng.normal(size=n), lo, hi)
        yield pytest.param(c, lo, hi, ridge, float(v.sum()), id=str(seed))


@pytest.mark.parametrize(("c", "lo", "hi", "ridge", "total"), cases())
def test_no_other_multiplier_gives_a_smaller_bound(c, lo, hi, ridge, total):
    b = best_multiplier(c, lo, hi, ridge, total)
    flat = ridge == 0
    floor = np.max(c[flat & np.isposinf(hi)], initial=-np.inf)
    ceiling = np.min(c[flat & np.isneginf(lo)], initial=np.inf)
    if b is None:
        assert floor > ceiling
        return
    assert floor <= b <= ceiling
    others = np.concatenate([c, c + 1e-3, c - 1e-3, np.linspace(-4, 4, 2001), [floor, ceiling]])
    others = others[np.isfinite(others) & (others >= floor) & (others <= ceiling)]
    best = min(bound(x, c, lo, hi, ridge, total) for x in others)
    assert bound(b, c, lo, hi, ridge, total) <= best + 1e-9


def test_a_large_hard_margin_takes_few_passes(monkeypatch):
    clips = []
    monkeypatch.setattr(np, "clip", lambda *a, **k: clips.append(a) or a[0])
    c = np.linspace(0.0, 1.0, 1000)
    assert best_multiplier(c, np.zeros(1000), np.full(1000, np.inf), np.zeros(1000), 1.0) == np.nextafter(
        1.0, 2.0
    )
    assert not clips


def test_gains_without_ridge_are_those_with_a_tiny_one():
    rng = np.random.default_rng(0)
    t, room = rng.normal(size=50), rng.uniform(0, 2, 50)
    room[:5] = np.inf
    plain, ridged = gain(t, room, np.zeros(50)), gain(t, room, np.full(50, 1e-300))
    assert np.array_equal(np.isinf(plain), np.isinf(ridged) | ((t > 0) & np.isinf(room)))
    np.testing.assert_allclose(plain[5:], ridged[5:], rtol=1e-12)
