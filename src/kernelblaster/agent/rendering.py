"""Renders the prompt templates in `prompts/`. A name that a template uses and the caller forgot is an error."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(Path(__file__).with_name("prompts")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # prompts are plain text, not markup
    )


def render(template: str, /, **values: object) -> str:
    """The text of `prompts/<template>.j2`. Raises jinja2.UndefinedError for a missing value."""
    return _environment().get_template(f"{template}.j2").render(**values).strip()
