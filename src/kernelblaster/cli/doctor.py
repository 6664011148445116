"""`kernelblaster doctor`: what this machine has, and what each lack costs."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from kernelblaster.cli import terminal
from kernelblaster.cli.options import JsonOption
from kernelblaster.cli.settings import ConfigOption, SetOption, configured, setting
from kernelblaster.cli.terminal import print_json
from kernelblaster.errors import ExitCode


def doctor(
    base_url: Annotated[str | None, setting("base_url")] = None,
    online: Annotated[bool, typer.Option("--online", help="Also contact the model endpoint.")] = False,
    config: ConfigOption = None,
    assignments: SetOption = None,
    json_output: JsonOption = False,
) -> int:
    """Check nvcc, compiler, GPU, driver, counters, sanitizer, disk and the model endpoint.

    Exit code 0 when kernels can be optimised on some device, 4 when not even the emulated one works.
    """
    from kernelblaster import examine_machine, is_usable
    from kernelblaster.cli.progress import Progress

    model = configured({"base_url": base_url}, file=config, assignments=assignments).config.model
    with Progress() as progress:
        probes = examine_machine(model, online=online, on_stage=progress.tell)
    usable = is_usable(probes)
    if json_output:
        print_json(probes)
        return int(ExitCode.OK if usable else ExitCode.MACHINE)
    console = terminal.console()
    for probe in probes:
        mark = "[yellow]lack[/]" if not probe.ok else "[green]ok  [/]" if probe.checked else "[cyan]?   [/]"
        console.print(f"{mark} {probe.name}: {escape(probe.found)}", soft_wrap=True)
        for label, text in (("costs: ", probe.costs), ("hint:  ", probe.hint)):
            if text:
                console.print(f"       {label}{escape(text)}", soft_wrap=True)
    return int(ExitCode.OK if usable else ExitCode.MACHINE)
