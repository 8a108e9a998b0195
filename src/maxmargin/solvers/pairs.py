"""The step that all pair methods take: one variable rises and one falls by the same amount."""

from __future__ import annotations

from maxmargin._compiled.jit import compiled


@compiled(inline="always")
def move_pair(u, i, j, step, top, bottom):  # type: ignore[no-untyped-def]
    """Raise ``u[i]`` and lower ``u[j]`` by `step`, or less: onto `top` or `bottom` exactly.

    Returns the step taken, and whether it moved anything in this precision.
    """
    room_i, room_j = top - u[i], u[j] - bottom
    d = min(step, min(room_i, room_j))
    before_i, before_j = u[i], u[j]
    u[i] = top if d == room_i else u[i] + d
    u[j] = bottom if d == room_j else u[j] - d
    return d, u[i] != before_i or u[j] != before_j
