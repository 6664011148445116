"""Compares the emulated device with what was captured of the conformance programs on a real GPU: the page of it.

    python benchmarks/ptxemu/emulator_calibration.py [--capture FILE.json.gz] [--output docs/emulator_calibration.md]

Runs every case of `tests/conformance/kernels` on the emulated device (some minutes; cases are kept until the program or
the core changes) and writes outputs, counters, times and bottlenecks beside those of the capture. What the model's
figures were fitted to (`benchmarks/ptxemu/emulator_fit.py`) and what judges them are told apart.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests" / "conformance"))

from calibration_page import Judged, page
from conformance_compare import Comparison, compare
from conformance_emulated import Emulator
from conformance_suite import CAPTURE, UNFITTED, Capture, comparable, halves, pairs, read_capture

from kernelblaster.devices.emulated.translation import device_facts
from kernelblaster.devices.facts import DeviceFacts
from kernelblaster.devices.profiles import Profile
from kernelblaster.evaluation.results import Timing
from kernelblaster.knowledge.derived import observed
from kernelblaster.knowledge.rules import classify
from kernelblaster.knowledge.schema import KnowledgeDocument
from kernelblaster.knowledge.store import seed_path
from ptxemu.model.architecture import GpuModel, gpu_model

PAGE = Path(__file__).resolve().parents[2] / "docs" / "emulator_calibration.md"


def comparisons(capture: Capture, gpu: GpuModel) -> list[Comparison]:
    """Every captured case beside its emulation. Raises ConformanceFailure when one does not run."""
    real = {case.run.case: case for case in comparable(capture)}
    emulator, found = Emulator(), []
    for name in sorted({case.program for case in capture.cases}):
        began = time.monotonic()
        cases = emulator.cases(name, list(real))
        found += [compare(real[case.run.case], case, gpu) for case in cases if case.run.case in real]
        print(f"{name}: {len(cases)} cases in {time.monotonic() - began:.1f} s", file=sys.stderr, flush=True)
    return found


def state(document: KnowledgeDocument, profile: Profile, facts: DeviceFacts, call_us: float) -> str:
    """What the classifier says of a profiled call; nothing is known of what these kernels could attain."""
    timing = Timing(
        median_us=call_us, low_us=call_us, high_us=call_us, iqr_us=0, samples=1, floor_us=None, floor_fraction=None,
        modelled=False,
    )  # fmt: skip
    values = observed(profile, facts, timing)
    return classify(document.states, values, document.fallback_state).state


def judged(found: Sequence[Comparison], capture: Capture, gpu: GpuModel) -> list[Judged]:
    """Comparisons with their halves, sessions and states: of those cases that one of the halves has."""
    programs_later = set(capture.later[0].programs)
    later = {case.run.case for case in capture.cases if case.program in programs_later}
    document = KnowledgeDocument.model_validate_json(seed_path().read_text(encoding="utf-8"))
    half, facts = halves(one.case for one in found), device_facts(gpu, None)
    return [
        Judged(
            comparison=one,
            half=half[one.case],
            later=one.case in later,
            real_state=state(document, one.real, facts, one.real_us),
            emulated_state=state(document, one.emulated, facts, one.emulated_us),
        )
        for one in found
    ]


def main() -> None:
    """Run, compare, write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--capture", type=Path, default=CAPTURE)
    parser.add_argument("--output", type=Path, default=PAGE)
    options = parser.parse_args()
    capture, gpu = read_capture(options.capture), gpu_model("h200")
    program = {case.run.case: case.program for case in capture.cases}
    found = comparisons(capture, gpu)
    halved = [one for one in found if program[one.case] not in UNFITTED]
    since = [(program[one.case], one) for one in found if program[one.case] in UNFITTED]
    text = page(judged(halved, capture, gpu), pairs(), capture, since)
    options.output.write_text(text, encoding="utf-8")
    print(f"wrote {options.output}", file=sys.stderr)


if __name__ == "__main__":
    main()
