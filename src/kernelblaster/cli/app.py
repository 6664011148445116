"""The Typer application: commands, the options of all of them, and how it is called."""

from __future__ import annotations

from typing import Annotated, NoReturn

import typer

from kernelblaster import __version__
from kernelblaster.cli import (
    answer,
    baseline,
    config,
    doctor,
    emulate,
    env,
    evaluate,
    interchange,
    kb,
    new,
    problems,
    report,
    reprofile,
    run,
    train,
)
from kernelblaster.cli.errors import exit_code_of, leave, prepare_process

app = typer.Typer(
    name="kernelblaster",
    help="Makes CUDA kernels faster: profile, recall, rewrite, verify, measure, remember.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done; 1 failed; 2 usage; 3 no improvement; 4 machine; 5 model; 6 budget; "
    "75 waits for replies; 124 out of time (emulate); 130 interrupted.",
)
app.command("run")(run.run)
app.command("evaluate")(evaluate.evaluate)
app.command("new")(new.new)
app.add_typer(problems.app, name="problems")
app.command("import")(interchange.import_problems)
app.command("export")(interchange.export)
app.add_typer(kb.app, name="kb")
app.add_typer(env.app, name="env")
app.add_typer(train.app, name="train")
app.command("baseline")(baseline.baseline)
app.command("reprofile")(reprofile.reprofile)
app.command("report")(report.report)
app.command("answer")(answer.answer)
app.command("emulate", cls=emulate.EmulateCommand)(emulate.emulate)
app.command("config")(config.config)
app.command("doctor")(doctor.doctor)


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
