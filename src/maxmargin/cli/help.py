"""Help texts: options that take no value are shown without a type."""

from __future__ import annotations

from typing import Any

from typer.core import TyperCommand, TyperGroup


class Command(TyperCommand):
    """A command with the options that its help shows."""

    def get_params(self, ctx: Any) -> list[Any]:
        """All parameters; flags without a type."""
        return [_without_type(param) for param in super().get_params(ctx)]


class Group(TyperGroup):
    """All commands, with the options that the help shows."""

    def get_params(self, ctx: Any) -> list[Any]:
        """All parameters; flags without a type."""
        return [_without_type(param) for param in super().get_params(ctx)]


def _without_type(param: Any) -> Any:
    if getattr(param, "is_flag", False):
        param.metavar = ""
    return param
