"""`ptxemu`: its exit codes, and what it writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from emulator_support import needs_tools

import ptxemu
from ptxemu.command import main, parse_options

SAXPY = Path(__file__).with_name("programs") / "saxpy.cu"
UNUSUAL = Path(__file__).with_name("programs") / "unusual.cu"
RACES = Path(__file__).with_name("planted") / "races.cu"


def test_what_follows_two_dashes_is_the_programs() -> None:
    options = parse_options(["--lines", "3", "a.cu", "x", "--checks", "-I", "one", "-I", "two", "--", "--lines", "--"])
    assert options.program == Path("a.cu")
    assert options.arguments == ("x", "--lines", "--")
    assert (options.lines, options.checks, options.include) == (3, True, (Path("one"), Path("two")))


@pytest.mark.parametrize(
    "words", [[], ["a.cu", "--lines", "-1"], ["a.cu", "--timeout", "0"], ["a.cu", "--sample", "inf"], ["a.cu", "--x"]]
)
def test_unusable_options_end_with_2(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        parse_options(words)
    assert caught.value.code == 2
    assert "usage: ptxemu" in capfd.readouterr().err


def test_missing_files_and_places_end_with_2(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "missing.cu")]) == 2
    assert "missing.cu" in capfd.readouterr().err
    assert main([str(SAXPY), "--json", str(tmp_path / "no" / "out.json")]) == 2
    assert str(tmp_path / "no" / "out.json") in capfd.readouterr().err


@pytest.mark.nvcc
@needs_tools
class TestRuns:
    """Programs that run."""

    def test_launches_and_the_whole_run_are_written(self, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        launches, record = tmp_path / "launches.json", tmp_path / "run.json"
        code = main([str(SAXPY), "--lines", "1", "--json", str(launches), "--record", str(record), "--", "5000"])
        printed = capfd.readouterr()
        assert code == 7, printed.err
        assert "y[10] = 30.000000" in printed.out
        assert "\x1b" not in printed.err
        result = ptxemu.RunResult.decoded(json.loads(record.read_text()))
        assert (result.exit_code, result.arguments, result.findings) == (7, ("5000",), None)
        (launch,) = result.launches
        assert len(launch.lines) == 1
        (listed,) = json.loads(launches.read_text())
        assert listed["device"] == result.device.name
        assert listed["metrics"] == launch.metrics

    def test_findings_fail_a_program_that_ends_well(self, capfd: pytest.CaptureFixture[str]) -> None:
        assert main([str(RACES), "--checks", "--", "tree_without_barrier"]) == 1
        assert "racecheck races.cu:10" in capfd.readouterr().err
        assert main([str(RACES), "--checks", "--", "barrier_in_tree"]) == 0

    def test_time_outs_and_signals_have_their_codes(self, capfd: pytest.CaptureFixture[str]) -> None:
        assert main([str(UNUSUAL), "--timeout", "1", "--", "sleep"]) == 124
        assert main([str(UNUSUAL), "--", "crash"]) == 128 + 6

    def test_programs_that_do_not_build_show_the_log(self, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "broken.cu").write_text("int main() { return undeclared; }\n")
        assert main([str(tmp_path / "broken.cu")]) == 2
        with pytest.raises(ptxemu.ProgramDoesNotBuild) as caught:
            ptxemu.build(tmp_path / "broken.cu")
        assert "undeclared" in caught.value.log

    def test_what_is_missing_is_named(self, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
        (tmp_path / "shared.cu").write_text("int main() { return cudaIpcCloseMemHandle(nullptr); }\n")
        assert main([str(tmp_path / "shared.cu")]) == 4
        assert "cudaIpcCloseMemHandle" in capfd.readouterr().err

    def test_what_another_file_defines_asks_for_that_file(
        self, tmp_path: Path, capfd: pytest.CaptureFixture[str]
    ) -> None:
        main_file, other = tmp_path / "main.cu", tmp_path / "other.cu"
        main_file.write_text("int answer();\nint main(int count, char**) { return answer() - 42 + count - 2; }\n")
        other.write_text("int answer() { return 42; }\n")
        assert main([str(main_file)]) == 2
        told = capfd.readouterr().err
        assert "undefined: answer()" in told
        assert "name that file" in told
        assert main([str(main_file), str(other), "--", "--of-the-program"]) == 0
