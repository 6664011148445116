"""What all groups of settings are."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A group of settings. What is written below a field is its documentation."""

    model_config = ConfigDict(use_attribute_docstrings=True)
