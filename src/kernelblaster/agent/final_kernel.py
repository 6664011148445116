"""The file a search leaves: the best kernel under a header that says what was measured, where and how."""

from __future__ import annotations

from pathlib import Path

from kernelblaster.devices.facts import DeviceFacts, DeviceKind
from kernelblaster.evaluation.results import Comparison, Evaluation

FINAL_KERNEL = "final_rl_cuda_perf.cu"


def final_kernel_path(directory: Path) -> Path:
    """Where the final kernel of a problem lies."""
    return directory / FINAL_KERNEL


def final_kernel_text(source: str, evaluation: Evaluation, facts: DeviceFacts, review: str | None) -> str:
    """The source under its header. `evaluation` compares it with the start; `review` is what the model said of it."""
    lines = [*_header(evaluation, facts), *([f"soft verification: {review}"] if review else [])]
    return "".join(f"// {line}\n" for line in lines) + source


def without_samples(comparison: Comparison) -> Comparison:
    """The comparison without the single samples of its timings."""
    bare: dict[str, object] = {"samples_us": []}
    return comparison.model_copy(
        update={
            "baseline": comparison.baseline.model_copy(update=bare),
            "candidate": comparison.candidate.model_copy(update=bare),
        }
    )


def process_pairs_text(comparison: Comparison) -> str:
    """The ratios of a comparison's sessions: `5 pairs of fresh processes: 1.210, 1.214, ...; spread 0.4%`."""
    ratios = ", ".join(f"{session.speedup:.3f}" for session in comparison.sessions)
    return f"{len(comparison.sessions)} pairs of fresh processes: {ratios}; spread {comparison.spread:.1%}"


def _interval(comparison: Comparison) -> str:
    """What low and high are of: `95 %: 1.210 to 1.224`, or the ratios of all sessions."""
    if comparison.sessions:
        return f"median of {process_pairs_text(comparison)}"
    return f"95 %: {comparison.low:.3f} to {comparison.high:.3f}"


def _conditions(comparison: Comparison) -> list[str]:
    """The clock of the GPU while it was measured, where it is known."""
    known = comparison.candidate.conditions
    if known is None:
        return []
    return [
        f"SM clock {known.sm_mhz_low:.0f} to {known.sm_mhz_high:.0f} MHz, "
        f"{known.temperature_low:.0f} to {known.temperature_high:.0f} degrees Celsius"
    ]


def _header(evaluation: Evaluation, facts: DeviceFacts) -> list[str]:
    emulated = facts.kind is DeviceKind.EMULATED
    what = f"{evaluation.precision}, size {evaluation.workload}"
    if evaluation.weakly_verified:
        what = "types and sizes of its own driver"
    lines = [f"KernelBlaster: {evaluation.problem}, {what}"]
    comparison = evaluation.comparison
    if comparison is not None:
        lines.append(
            f"{'modelled' if emulated else 'measured'} speed-up over the start {comparison.speedup:.3f}x "
            f"({_interval(comparison)}), "
            f"{comparison.baseline.median_us:.2f} us -> {comparison.candidate.median_us:.2f} us per call, cold L2"
        )
        lines += _conditions(comparison)
    elif evaluation.timing is not None:
        timed = "modelled" if emulated else "measured"
        lines.append(
            f"the first correct kernel that the model wrote, and nothing beat it; {timed} "
            f"{evaluation.timing.median_us:.2f} us per call, cold L2"
        )
    device = f"{facts.name} ({facts.arch})"
    lines.append(f"device: emulated {device}; times come from a model of the GPU" if emulated else f"device: {device}")
    if not evaluation.outputs_judged:
        lines.append(f"outputs were judged at smaller sizes, not at {evaluation.workload}")
    if evaluation.weakly_verified:
        lines.append("weakly verified: the problem's own driver judged it")
    return lines
