"""The Typer application: commands, the options of all of them, and how it is called."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.main import get_command

from kernelblaster import __version__
from kernelblaster.cli.errors import exit_code_of, leave, prepare_process

COMMANDS = {
    "run": "run:run",
    "evaluate": "evaluate:evaluate",
    "new": "new:new",
    "problems": "problems:app",
    "import": "interchange:import_problems",
    "export": "interchange:export",
    "kb": "kb:app",
    "env": "env:app",
    "train": "train:app",
    "baseline": "baseline:baseline",
    "reprofile": "reprofile:reprofile",
    "report": "report:report",
    "answer": "answer:answer",
    "emulate": "emulate:app",
    "config": "config:config",
    "doctor": "doctor:doctor",
}
"""Each command, and where below `kernelblaster.cli` its function or its group is."""


class Commands(TyperGroup):
    """Imports a command when it is asked for: all of them together take half a second."""

    def list_commands(self, ctx: Any) -> list[str]:
        """In the order of help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """None for a name that is none."""
        if cmd_name in COMMANDS and cmd_name not in self.commands:
            self.add_command(_loaded(cmd_name), cmd_name)
        return super().get_command(ctx, cmd_name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """What was asked for; a name that is none is told with those that are like it."""
        if args[0] not in COMMANDS:
            for name in COMMANDS:
                self.get_command(ctx, name)
        return super().resolve_command(ctx, args)


def _loaded(name: str) -> Any:
    module, attribute = COMMANDS[name].split(":")
    found = getattr(import_module(f"kernelblaster.cli.{module}"), attribute)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False)
        alone.command(name)(found)
        return get_command(alone)
    command = get_command(found)
    command.name = name
    return command


app = typer.Typer(
    name="kernelblaster",
    help="Makes CUDA kernels faster: profile, recall, rewrite, verify, measure, remember.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done; 1 failed; 2 usage; 3 no improvement; 4 machine; 5 model; 6 budget; "
    "75 waits for replies; 124 out of time (emulate); 130 interrupted.",
)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"kernelblaster {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Makes CUDA kernels faster: profile, recall, rewrite, verify, measure, remember."""


def run_app() -> NoReturn:
    """Run the command line and end the process."""
    prepare_process()
    leave(exit_code_of(lambda: app(prog_name="kernelblaster", standalone_mode=False)))
