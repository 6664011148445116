"""`kernelblaster kb`: look into, import, merge and check knowledge bases."""

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

app = typer.Typer(help="Look into, import, merge and check knowledge bases.", no_args_is_help=True)

FileArgument = Annotated[Path | None, typer.Argument(help="optimization_database.json; the shipped seed if not given.")]


def _path(file: Path | None) -> Path:
    from kernelblaster.knowledge.store import seed_path

    return file or seed_path()


@app.command("show")
def show(
    file: FileArgument = None,
    json_output: JsonOption = False,
) -> int:
    """Show states, techniques and what was measured with them."""
    from kernelblaster.knowledge.store import KnowledgeStore

    base = KnowledgeStore(_path(file), owned=False).load()
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
    from kernelblaster.knowledge.store import KnowledgeStore

    path = _path(file)
    base = KnowledgeStore(path, owned=False).load()
    facts = {"file": str(path), "states": len(base.states), "techniques": len(base.techniques)}
    if json_output:
        print_json(facts)
    else:
        typer.echo(f"{path}: sound, {facts['states']} states, {facts['techniques']} techniques")
    return int(ExitCode.OK)


@app.command("render")
def render(file: FileArgument = None) -> int:
    """Print a knowledge base as Markdown."""
    from kernelblaster.knowledge.render import render as render_markdown
    from kernelblaster.knowledge.store import KnowledgeStore

    sys.stdout.write(render_markdown(KnowledgeStore(_path(file), owned=False).load().document))
    return int(ExitCode.OK)


@app.command("merge")
def merge(
    target: Annotated[Path, typer.Argument(help="Knowledge base that takes the others in.")],
    others: Annotated[list[Path], typer.Argument(help="Knowledge bases to add.")],
    json_output: JsonOption = False,
) -> int:
    """Add the measurements and lessons of other knowledge bases to one."""
    from kernelblaster.knowledge.store import KnowledgeStore

    store = KnowledgeStore(target)
    rows = len(store.merge(others).statistics)
    if json_output:
        print_json({"file": str(target), "rows": rows})
    else:
        typer.echo(f"{target}: {rows} rows of statistics")
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
    from kernelblaster.knowledge.store import KnowledgeStore
    from kernelblaster.knowledge.upstream import import_file

    # A file that cannot be imported is refused before anything is written.
    import_file(KnowledgeStore(_path(None), owned=False).load().document, file)
    store = KnowledgeStore(target)
    store.create()
    before = len(store.load().techniques)
    after = store.update(lambda document: import_file(document, file))
    new = len(after.techniques) - before
    if json_output:
        print_json({"file": str(target), "techniques": len(after.techniques), "new": new})
    else:
        typer.echo(f"{target}: {len(after.techniques)} techniques, {new} of them new")
    return int(ExitCode.OK)
