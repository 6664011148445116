"""`kernelblaster env` as a person types it."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from kernelblaster.cli.app import app
from kernelblaster.environment.catalogue import Catalogue, problem_identifier
from kernelblaster.errors import UsageError


def invoke(*arguments: str) -> list[str]:
    return (
        CliRunner().invoke(app, ["env", *arguments], catch_exceptions=False, standalone_mode=False).stdout.splitlines()
    )


def test_the_list_holds_each_problem_of_a_split_by_its_name(catalogue: Catalogue) -> None:
    names = [line.split()[0] for line in invoke("list", "--split", "heldout")]
    assert names == [problem_identifier(problem) for problem in catalogue.tasks("heldout")]


@pytest.mark.parametrize("arguments", [("list", "--split", "nine"), ("try", "L1_23", "missing.cu")])
def test_what_is_not_there_is_a_usage_error(arguments: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        invoke(*arguments)
