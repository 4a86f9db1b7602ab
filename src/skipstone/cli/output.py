"""How commands answer: as text for people, or as JSON for programs."""

from __future__ import annotations

import dataclasses
import json
import os
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

__all__ = ["Output", "console", "print_json", "telling"]

_PIPE_WIDTH = 160


class Output(StrEnum):
    """How a command answers."""

    TEXT = "text"
    JSON = "json"


def console(*, stderr: bool = False) -> Console:
    """Return a console that does not squeeze tables when nobody looks; rich itself honours ``NO_COLOR``."""
    from rich.console import Console

    made = Console(stderr=stderr)
    if not made.is_terminal and "COLUMNS" not in os.environ:
        made.width = _PIPE_WIDTH
    return made


def telling() -> Callable[[str], None]:
    """Return a function that shows a waiting person what is going on; programs see nothing of it."""
    stderr = console(stderr=True)
    return lambda text: stderr.print(text, style="dim", highlight=False) if stderr.is_terminal else None


def print_json(value: Any) -> None:
    """Print one JSON document; dataclasses become objects."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, default=dataclasses.asdict))
