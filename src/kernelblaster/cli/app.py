"""The Typer application: commands, the error edge and the options they share."""

from __future__ import annotations

import sys
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.markup import escape

from kernelblaster import __version__
from kernelblaster.cli import answer, baseline, doctor, evaluate, kb, problems, report, reprofile, run
from kernelblaster.errors import ExitCode, KernelBlasterError

app = typer.Typer(
    name="kernelblaster",
    help="Makes CUDA kernels faster: profile, recall, rewrite, verify, measure, remember.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Exit codes: 0 done; 1 failed; 2 usage; 3 no improvement; 4 machine; 5 model; 6 budget; "
    "75 waits for replies; 130 interrupted.",
)
app.command("run")(run.run)
app.command("evaluate")(evaluate.evaluate)
app.add_typer(problems.app, name="problems")
app.add_typer(kb.app, name="kb")
app.command("baseline")(baseline.baseline)
app.command("reprofile")(reprofile.reprofile)
app.command("report")(report.report)
app.command("answer")(answer.answer)
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


def _fail(error: KernelBlasterError) -> NoReturn:
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(f"[bold red]error:[/] {escape(error.message)}")
    if error.cure:
        console.print(f"  [dim]->[/] {escape(error.cure)}")
    sys.exit(int(error.exit_code))


def run_app() -> NoReturn:
    """Run the command line; every expected error becomes one line, its cure and its exit code."""
    try:
        code = app(standalone_mode=False)
    except KernelBlasterError as error:
        _fail(error)
    except typer.TyperException as error:
        error.show()
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        print("interrupted; the same command continues where it stopped", file=sys.stderr)
        sys.exit(int(ExitCode.INTERRUPTED))
    except BrokenPipeError:
        # The reader of our output is gone (`| head`); there is nobody left to tell.
        sys.stderr.close()
        sys.exit(int(ExitCode.OK))
    sys.exit(code if isinstance(code, int) else int(ExitCode.OK))
