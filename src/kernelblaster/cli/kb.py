"""`kernelblaster kb`: look into, import, merge, compare and check knowledge bases."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from kernelblaster import Split
from kernelblaster.cli import terminal
from kernelblaster.cli.options import JsonOption
from kernelblaster.cli.terminal import print_json
from kernelblaster.errors import ExitCode

app = typer.Typer(
    help="Look into, import, merge, compare and check knowledge bases.", no_args_is_help=True, add_completion=False
)

FileArgument = Annotated[Path | None, typer.Argument(help="optimization_database.json; the shipped seed if not given.")]


@app.command("show")
def show(
    file: FileArgument = None,
    json_output: JsonOption = False,
) -> int:
    """Show what each technique brought in each state: attempts, correct ones, mean gain with interval, best."""
    from kernelblaster import read_knowledge

    base = read_knowledge(file)
    if json_output:
        print_json(base.document)
        return int(ExitCode.OK)
    from kernelblaster.cli.kb_view import print_knowledge

    print_knowledge(terminal.console(), base)
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
    from kernelblaster import diff_knowledge, merge_into, read_knowledge
    from kernelblaster.cli.kb_view import news

    before = read_knowledge(target)
    after = merge_into(target, others)
    gained = diff_knowledge(before, after)
    if json_output:
        rows = len(after.document.statistics)
        print_json({"file": str(target), "rows": rows, "changed": not gained.empty, "gained": gained})
    else:
        typer.echo(f"{target}: {news(gained) or 'knew all of it already; nothing changed'}")
    return int(ExitCode.OK)


@app.command("learn")
def learn(
    target: Annotated[Path, typer.Argument(help="Knowledge base to write.")],
    sources: Annotated[
        list[Path],
        typer.Argument(help="Directories of experiments (with experience.sqlite), and files of transitions (.jsonl)."),
    ],
    split: Annotated[
        Split | None, typer.Option("--split", help="Learn on problems of this part of the shipped data set alone.")
    ] = None,
    without_family: Annotated[
        list[str] | None,
        typer.Option("--without-family", help="Learn nothing on problems of this operator family; may be repeated."),
    ] = None,
    without_transition: Annotated[
        list[str] | None,
        typer.Option("--without-transition", help="Do not learn the transition of this digest; may be repeated."),
    ] = None,
    json_output: JsonOption = False,
) -> int:
    """Reckon statistics anew from measured transitions, on the shipped states, techniques and kernels.

    With --split or --without-family the shipped kernels of other problems are left out, too: a study of learning asks
    on what nothing was learned on.
    """
    from kernelblaster import learn_knowledge, write_knowledge

    learned = learn_knowledge(
        sources,
        split=split,
        without_families=without_family or (),
        without_transitions=without_transition or (),
    )
    write_knowledge(learned.base, target)
    document = learned.base.document
    facts = {"counted": learned.counted, "rows": len(document.statistics), "cores": len(document.cores)}
    if json_output:
        print_json({"file": str(target), **facts, "refused": learned.refused})
        return int(ExitCode.OK)
    typer.echo(
        f"{target}: {learned.counted} transitions in {facts['rows']} rows of statistics, {facts['cores']} kernels"
    )
    for reason, count in sorted(learned.refused.items()):
        typer.echo(f"not counted: {count}, {reason}")
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
    from kernelblaster.cli.kb_view import print_diff

    print_diff(terminal.console(), found)
    return int(ExitCode.OK)


@app.command("remember")
def remember(
    target: Annotated[
        Path, typer.Argument(help="Knowledge base to add them to; begun from the shipped seed if missing.")
    ],
    recordings: Annotated[list[Path], typer.Argument(help="Recordings of searches on a GPU (.jsonl or .jsonl.gz).")],
    json_output: JsonOption = False,
) -> int:
    """Add the fastest kernel of each recorded problem to the code memory.

    Later searches of the problem begin with it, and prompts of other problems show it.
    """
    from kernelblaster import remember_recordings

    after, cores = remember_recordings(recordings, target)
    if json_output:
        told = [core.model_dump(mode="json", exclude={"source", "whole"}) | {"id": core.id} for core in cores]
        print_json({"file": str(target), "cores": told, "in_all": len(after.document.cores)})
        return int(ExitCode.OK)
    for core in cores:
        typer.echo(f"{core.problem}  {core.op_family}  {core.precision}  {core.arch}  {core.median_us:.4g} us")
    typer.echo(f"{target}: {len(cores)} kernels found, {len(after.document.cores)} in the code memory")
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
