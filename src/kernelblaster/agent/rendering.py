"""Renders the prompt templates in `prompts/`. A name that a template uses and the caller forgot is an error."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

PROMPTS = Path(__file__).with_name("prompts")


@cache
def templates(*folders: Path) -> Environment:
    """The templates of these folders, the first that has a name deciding."""
    return Environment(
        loader=FileSystemLoader(folders),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # prompts are plain text, not markup
    )


def render(template: str, /, **values: object) -> str:
    """The text of `prompts/<template>.j2`. Raises jinja2.UndefinedError for a missing value."""
    return templates(PROMPTS).get_template(f"{template}.j2").render(**values).strip()
