"""`kernelblaster config`: the settings that hold here, and where each was written."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Table

from kernelblaster.cli import terminal
from kernelblaster.cli.options import JsonOption
from kernelblaster.cli.settings import ConfigOption, SetOption, configured
from kernelblaster.config.fields import Setting, settings, shown
from kernelblaster.config.reference import reference_page
from kernelblaster.config.sources import EffectiveConfig, Source
from kernelblaster.errors import ExitCode

HIDDEN = "(hidden)"


def config(
    config: ConfigOption = None,
    assignments: SetOption = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the reference of all settings as Markdown instead.")
    ] = False,
    json_output: JsonOption = False,
) -> int:
    """Show every setting, its value, and where that comes from: default, file, environment or option.

    Names that nothing stands for are refused.
    """
    import kernelblaster as library

    if markdown:
        typer.echo(reference_page(), nl=False)
        return int(ExitCode.OK)
    effective = configured(file=config, assignments=assignments)
    library.require_registered(effective)
    rows = {path: _value(effective, known) for path, known in settings().items()}
    if json_output:
        terminal.print_json(
            {path: {"value": value, "origin": str(effective.origins[path])} for path, value in rows.items()}
        )
        return int(ExitCode.OK)
    table = Table(box=None, header_style="dim", pad_edge=False)
    table.add_column("setting", no_wrap=True)
    table.add_column("value", overflow="fold")
    table.add_column("from", overflow="fold")
    for path, value in rows.items():
        origin = effective.origins[path]
        table.add_row(path, shown(value), str(origin), style="" if origin.source is not Source.DEFAULT else "dim")
    terminal.console().print(table)
    return int(ExitCode.OK)


def _value(effective: EffectiveConfig, known: Setting) -> Any:
    value: Any = effective.config
    for part in known.path.split("."):
        value = getattr(value, part)
    return HIDDEN if known.secret and value is not None else value
