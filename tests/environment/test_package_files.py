"""The OpenEnv package as OpenEnv builds it, with a stand-in for Docker that looks at the context it is given."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest
import yaml

PACKAGE = Path(__file__).parents[2] / "environments" / "kernelblaster"
ARCHIVE = "kernelblaster.tar.gz"
DOCKER = """#!{python}
import json, pathlib, sys
context = pathlib.Path(sys.argv[-1])
dockerfile = pathlib.Path(sys.argv[sys.argv.index("-f") + 1])
told = {{"arguments": sys.argv[1:], "context": sorted(str(one.relative_to(context)) for one in context.rglob("*")),
        "dockerfile": dockerfile.read_text()}}
pathlib.Path({to!r}).write_text(json.dumps(told))
"""


@pytest.fixture(scope="module")
def instructions() -> list[tuple[str, str]]:
    """Instructions of the Dockerfile with what follows."""
    text = re.sub(r"^#.*\n", "", (PACKAGE / "Dockerfile").read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in text.splitlines() if line)]


def values(instructions: list[tuple[str, str]], name: str) -> list[str]:
    return [rest for found, rest in instructions if found == name]


def test_it_begins_with_an_image_of_a_registry_and_ends_without_root(instructions: list[tuple[str, str]]) -> None:
    (image,) = values(instructions, "FROM")
    assert re.fullmatch(r"[\w.-]+/[\w./-]+:[\w.-]+", image), "a name of this machine alone would not be found elsewhere"
    assert values(instructions, "USER")[-1] == "blaster"


def test_it_listens_where_its_manifest_says_and_is_asked_for_its_health(instructions: list[tuple[str, str]]) -> None:
    port = yaml.safe_load((PACKAGE / "openenv.yaml").read_text())["port"]
    assert values(instructions, "EXPOSE") == [str(port)]
    assert f"127.0.0.1:{port}/health" in values(instructions, "HEALTHCHECK")[0]
    command = json.loads(values(instructions, "CMD")[0])
    assert command[:3] == ["kernelblaster", "env", "serve"]
    assert command[command.index("--port") + 1] == str(port)


def test_it_brings_both_languages(instructions: list[tuple[str, str]]) -> None:
    (set_up,) = [rest for rest in values(instructions, "RUN") if "setup.sh" in rest]
    assert "KERNELBLASTER_EXTRAS=env,triton" in shlex.split(set_up)
    declared = tomllib.loads((PACKAGE.parents[1] / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert {"env", "triton"} <= declared.keys()


def test_openenv_build_gives_it_all_that_it_copies(instructions: list[tuple[str, str]], tmp_path: Path) -> None:
    pytest.importorskip("openenv", reason="needs openenv: the extra env")
    docker, told = tmp_path / "docker", tmp_path / "told.json"
    docker.write_text(DOCKER.format(python=sys.executable, to=str(told)))
    docker.chmod(0o755)
    package = tmp_path / "kernelblaster"
    package.mkdir()
    for file in PACKAGE.rglob("*"):  # as somebody has it who has packed
        if file.is_file() and file.name != ARCHIVE and "__pycache__" not in file.parts:
            copy = package / file.relative_to(PACKAGE)
            copy.parent.mkdir(exist_ok=True)
            copy.write_bytes(file.read_bytes())
    (package / ARCHIVE).touch()
    built = subprocess.run(
        [sys.executable, "-c", "from openenv.cli.__main__ import main; main()", "build", str(package)],
        env=os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}, capture_output=True, text=True,
    )  # fmt: skip
    assert built.returncode == 0, built.stdout + built.stderr
    found = json.loads(told.read_text())
    default = dict(argument.split("=") for argument in values(instructions, "ARG"))
    sources = [rest.split()[-2] for name, rest in instructions if name in ("ADD", "COPY")]
    assert sources == ["${KERNELBLASTER_SOURCE}"]
    assert default["KERNELBLASTER_SOURCE"] in found["context"]
    assert found["dockerfile"] == (PACKAGE / "Dockerfile").read_text()


def test_what_is_packed_is_what_the_image_needs(tmp_path: Path) -> None:
    """A copy of the checkout as far as it is committed, without Git's own folder."""
    root = PACKAGE.parents[1]
    if not (root / ".git").exists():
        pytest.skip("no Git checkout")
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", f"file://{root}", str(clone)], check=True)
    package = clone / PACKAGE.relative_to(root)
    (package / "pack.sh").write_bytes((PACKAGE / "pack.sh").read_bytes())
    subprocess.run(["bash", str(package / "pack.sh")], check=True, capture_output=True)
    with tarfile.open(package / ARCHIVE) as archive:
        packed = set(archive.getnames())
    needed = {"pyproject.toml", "constraints.txt", "README.md", "scripts/setup.sh", "src/kernelblaster/__init__.py"}
    assert needed <= packed
    assert {"data/kernrl", "data/kernelbench-cuda", "data/kb/optimization_database.json"} <= packed
    assert not {name for name in packed if name.startswith((".git", ".env", "out", "tests"))}
    ignored = subprocess.run(["git", "-C", str(clone), "status", "--short"], capture_output=True, text=True, check=True)
    assert ARCHIVE not in ignored.stdout
