"""`kernelblaster kb`: look into, import, merge, compare and check knowledge bases."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from kernelblaster.cli import terminal
from kernelblaster.cli.options import JsonOption
from kernelblaster.cli.terminal import print_json
from kernelblaster.errors import ExitCode

app = typer.Typer(help="Look into, import, merge, compare and check knowledge bases.", no_args_is_help=True)

FileArgument = Annotated[Path | None, typer.Argument(help="optimization_database.json; the shipped seed if not given.")]


@app.command("show")
def show(
    file: FileArgument = None,
    json_output: JsonOption = False,
) -> int:
    """Show states, techniques and what was measured with them."""
    from kernelblaster import read_knowledge

    base = read_knowledge(file)
    if json_output:
        print_json(base.document)
        return int(ExitCode.OK)
    table = Table(box=None, header_style="dim")
    for column in ("state", "group", "techniques", "attempts measured", "attempts emulated"):
        table.add_column(column)
    for name, entry in base.states.items():
        rows = [row for row in base.document.statistics if row.cell.state == name]
        counts = {
            kind: sum(row.sums.attempts for row in rows if row.cell.device_kind == kind)
            for kind in ("cuda", "emulated")
        }
        table.add_row(name, entry.group, str(len(entry.techniques)), str(counts["cuda"]), str(counts["emulated"]))
    terminal.console().print(table)
    return int(ExitCode.OK)


@app.command("check")
def check(file: FileArgument = None, json_output: JsonOption = False) -> int:
    """Validate a knowledge base against its schema."""
    from kernelblaster import read_knowledge, seed_path

    path = file or seed_path()
    base = read_knowledge(path)
    facts = {"file": str(path), "states": len(base.states), "techniques": len(base.techniques)}
    if json_output:
        print_json(facts)
    else:
        typer.echo(f"{path}: sound, {facts['states']} states, {facts['techniques']} techniques")
    return int(ExitCode.OK)


@app.command("render")
def render(file: FileArgument = None) -> int:
    """Print a knowledge base as Markdown."""
    from kernelblaster import render_knowledge

    sys.stdout.write(render_knowledge(file))
    return int(ExitCode.OK)


@app.command("merge")
def merge(
    target: Annotated[Path, typer.Argument(help="Knowledge base that takes the others in.")],
    others: Annotated[list[Path], typer.Argument(help="Knowledge bases to add.")],
    json_output: JsonOption = False,
) -> int:
    """Add the measurements and lessons of other knowledge bases to one."""
    from kernelblaster import merge_into

    rows = len(merge_into(target, others).document.statistics)
    if json_output:
        print_json({"file": str(target), "rows": rows})
    else:
        typer.echo(f"{target}: {rows} rows of statistics")
    return int(ExitCode.OK)


@app.command("diff")
def diff(
    before: Annotated[Path, typer.Argument(help="A knowledge base.")],
    after: Annotated[Path, typer.Argument(help="One to hold against it.")],
    json_output: JsonOption = False,
) -> int:
    """Show what one knowledge base knows beyond another, and what it lacks."""
    from kernelblaster import diff_knowledge

    found = diff_knowledge(before, after)
    if json_output:
        print_json(found)
        return int(ExitCode.OK)
    for kind in ("states", "techniques", "lessons", "proposals", "changes"):
        names = getattr(found, kind)
        for sign, listed in (("+", names.added), ("-", names.removed), ("~", names.changed)):
            for name in listed:
                typer.echo(f"{sign} {kind.removesuffix('s')} {name}")
    for row in found.evidence:
        where = f"{row.state}, {row.technique}, {row.arch}, {row.device_kind}"
        typer.echo(f"~ attempts {where}: {row.before} -> {row.after}")
    if found.empty:
        typer.echo("both know the same")
    return int(ExitCode.OK)


@app.command("import")
def import_upstream(
    file: Annotated[Path, typer.Argument(help="optimization_database.json of KernelBlaster's first release.")],
    target: Annotated[
        Path, typer.Argument(help="Knowledge base to add it to; begun from the shipped seed if missing.")
    ],
    json_output: JsonOption = False,
) -> int:
    """Import the first release's knowledge base: its figures become weak priors, never measurements."""
    from kernelblaster import import_upstream as import_file

    after, new = import_file(file, target)
    if json_output:
        print_json({"file": str(target), "techniques": len(after.techniques), "new": new})
    else:
        typer.echo(f"{target}: {len(after.techniques)} techniques, {new} of them new")
    return int(ExitCode.OK)
