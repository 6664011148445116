"""The reference of all settings as Markdown, docs/configuration.md: made from the schema, never written by hand."""

from __future__ import annotations

from collections.abc import Iterator

from kernelblaster.config.fields import Setting, sections, settings
from kernelblaster.config.schema import SearchPart
from kernelblaster.config.sources import CONFIG_FILE, PREFIX, SECOND_EXPERIMENT, VARIABLES

_HEAD = f"""\
# Configuration

Settings come from four places; each wins over those before it: defaults, a TOML file (`{CONFIG_FILE}` in the working
directory, or `--config FILE`), the environment (`.env` included), options. `kernelblaster config` shows what holds and
where it was written, and each run records both in `run.json`.

Every setting is reached in every way; `search.least_headroom`, for example:

```toml
[search]
least_headroom = 1.1
```

or `{PREFIX}SEARCH__LEAST_HEADROOM=1.1`, or `--set search.least_headroom=1.1`. `none` unsets what may be unset, lists
have commas, relative paths start at the working directory. Some settings have options and variables of their own:
`kernelblaster run --help` names the options; `{SECOND_EXPERIMENT}` is appended to the experiment's name.

This page is the output of `kernelblaster config --markdown`.
"""


def reference_page() -> str:
    """The whole page."""
    return _HEAD + "".join(_section(name, about) for name, about in sections().items()) + _parts()


def _parts() -> str:
    """What can be ablated."""
    lines = "".join(f"- `{part}`: {part.about}.\n" for part in SearchPart)
    return f"\n## Parts of the search\n\n`search.ablate`, or `--ablate NAME,NAME`, switches these off:\n\n{lines}"


def _section(name: str, about: str) -> str:
    rows = [known for path, known in settings().items() if path.rpartition(".")[0] == name]
    head = f"\n## {f'[{name}]' if name else 'The run'}\n\n{about.strip()}\n\n"
    return head + "| setting | type | default | meaning |\n|---|---|---|---|\n" + "".join(map(_row, rows))


def _row(known: Setting) -> str:
    cells = (f"`{known.path}`", known.kind, known.default, " ".join(_meaning(known)))
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def _meaning(known: Setting) -> Iterator[str]:
    yield known.doc
    yield from (f"Variable `{name}`." for name, path in VARIABLES.items() if path == known.path)
