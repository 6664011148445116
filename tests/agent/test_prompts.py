"""What the model is shown: complete, within its budget of tokens, and the same for the same state."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import jinja2
import pytest
from agent_support import FACTS, ScriptedModel, answer, kernel, make_context
from hypothesis import given
from hypothesis import strategies as st

from kernelblaster.agent.graph import run_problem
from kernelblaster.agent.outcome import Incumbent
from kernelblaster.agent.prompting import generate_request
from kernelblaster.agent.rendering import render
from kernelblaster.agent.sources import cut_middle, strip_comments, trimmed_reference
from kernelblaster.agent.state import Attempt, Choice, Failure, PromptLesson, RolloutState, StepDiagnosis, Tried
from kernelblaster.agent.summary import budget_summary, profile_summary, time_summary
from kernelblaster.agent.task import unjudged_sizes
from kernelblaster.devices.facts import DeviceKind, Library
from kernelblaster.devices.metrics import Metric
from kernelblaster.devices.profiles import KernelProfile, KernelResources, Profile, ProfileSource
from kernelblaster.evaluation.inputs.plan import plan_inputs
from kernelblaster.evaluation.results import Evaluation, Timing, Verdict
from kernelblaster.problems.dtype import DType
from kernelblaster.problems.problem import Precision, StandardWorkload, TensorRole, TensorSpec

CHARACTERS_PER_TOKEN = 4
TOKEN_BUDGET = 2450
"""Of a prompt beyond the two sources that it shows whole: kernel and reference."""
LONG = "Replace the scalar loop by one that loads sixteen bytes per thread, and keep a scalar loop for the tail."


def evaluation(kernels: int = 12, **changes) -> Evaluation:
    """A correct evaluation whose profile holds every metric."""
    metrics = {str(metric): 123456.789 for metric in Metric}
    profiles = [
        KernelProfile(
            name=f"void fused_kernel_{number}<__half, 256, 8, true>(const __half*, const __half*, __half*, int, int)",
            grid=(65535, 16, 1), block=(32, 8, 4), metrics={**metrics, str(Metric.DURATION): 1000.0 * number},
            notes={"occupancy_limiter": "registers"},
        )
        for number in range(kernels)
    ]  # fmt: skip
    figures = {
        "problem": "level1/023", "source_sha256": "0" * 64, "verdict": Verdict.CORRECT, "reason": "",
        "device": DeviceKind.EMULATED, "device_name": "H200", "arch": "sm_90", "precision": Precision.FP16,
        "workload": StandardWorkload.SMALL,
        "timing": Timing(
            median_us=812.5, low_us=800, high_us=820, iqr_us=4, samples=20, floor_us=120.0, floor_fraction=0.148,
            attainable_us=162.5, modelled=True,
        ),
        "profile": Profile(source=ProfileSource.EMULATED, kernels=profiles, totals=metrics),
    }  # fmt: skip
    return Evaluation(**{**figures, **changes})


def full_state(context) -> RolloutState:
    """A state in which every part of the prompt is as long as it gets."""
    sha256 = context.files.put_candidate(kernel(1.0, tag="start"))
    context.files.put_evaluation("start", evaluation())
    return RolloutState(
        round=1, index=0, step=9, incumbent=Incumbent(sha256=sha256, evaluation="start"),
        diagnosis=StepDiagnosis(
            parent=sha256, state="memory_bandwidth_saturated", confidence=0.87, decided_by="rules", evidence=[LONG] * 6
        ),
        choice=Choice(
            technique="vectorized_memory_access", summary=LONG, how_to=[LONG] * 8, checks=[LONG] * 4,
            expected_speedup=1.31, p_correct=0.62, evidence_count=214, backed_off_to="state, technique, arch",
            lessons=[PromptLesson(id=str(n), text=(LONG + LONG + LONG)[:300]) for n in range(3)],
        ),
        tried=[Tried(technique="shared_memory_tiling", outcome="wrong_values", stated_speedup=2.0)] * 6,
    )  # fmt: skip


def wordy_context(tmp_path, **changes):
    """A context with a long reference."""
    context = make_context(tmp_path, ScriptedModel(tmp_path / "m", lambda *place: ""), **changes)
    body = "\n".join(f"        x = torch.relu(self.layer{n}(x)) + x.mean(dim={n}, keepdim=True)" for n in range(60))
    context.problem.reference_path.write_text(
        f"import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n{body}\n"
    )
    return context


def test_the_longest_prompt_stays_within_its_budget_beyond_its_sources(tmp_path):
    weights = tuple(TensorSpec(f"layer{n}.weight", TensorRole.WEIGHT, DType.FLOAT16, (1024, 1024)) for n in range(60))
    context = wordy_context(tmp_path, tensors=weights)
    request = generate_request(context, full_state(context), 0)
    source = context.problem.init_path.read_text()
    reference = trimmed_reference(context.problem.reference_path.read_text(), 10**6)
    assert reference in request.messages[1].content
    total = sum(len(message.content) for message in request.messages) - len(source) - len(reference)
    assert total / CHARACTERS_PER_TOKEN <= TOKEN_BUDGET


def test_the_prompt_holds_what_an_author_needs(tmp_path):
    context = make_context(tmp_path, ScriptedModel(tmp_path / "m", lambda *place: ""), libraries=(Library.CUBLAS,))
    text = generate_request(context, full_state(context), 0).messages[1].content
    for needed in (
        "torch.softmax(x, dim=1)",
        "input x: fp16 [4, 33]",
        "batch_size=4, dim=33",
        "medium (batch_size=64, dim=1000)",
        "void launch_gpu_implementation(void* output, void* x, int64_t batch_size, int64_t dim);",
        "`__half`",
        "132 SMs",
        "cublas",
        "812.50 us (modelled); a well-written kernel should reach about 162.50 us here, so 5.00x is left",
        "214 attempts, 62% expected to be correct, then at 1.31x",
        "EXPECTED_SPEEDUP: <number>",
        "__global__ void kstart",
    ):
        assert needed in text, needed
    assert "the truth" not in text


@pytest.mark.parametrize("samples", [False, True])
@pytest.mark.parametrize("timed", ["small", "medium"])
def test_sizes_are_told_as_verified_if_the_judge_compares_outputs_there(tmp_path, timed, samples):
    context = make_context(tmp_path, ScriptedModel(tmp_path / "m", lambda *place: ""))
    problem = replace(context.problem, workloads={**context.problem.workloads, "full": {"batch_size": 99, "dim": 7777}})
    context = replace(context, problem=problem, workload=timed, samples_blocks=samples)
    plan = plan_inputs(problem, context.precision, timed, 3, 1, judge_timed=not samples)
    judged = {key.workload for key in (*plan.verified, *([plan.timed] if plan.timed.judged else []))}
    assert set(unjudged_sizes(context)) == set(problem.workloads) - judged
    text = generate_request(context, full_state(context), 0).messages[1].content
    lines = {
        name: next(line for line in text.splitlines() if f"{name} (" in line) for name in {"small", "full"} - {timed}
    }
    assert lines.get("small") != lines["full"], "what is verified is told apart from what is not"
    sizes = {line for line in text.splitlines() if "dim=" in line}
    whole = generate_request(replace(context, samples_blocks=not samples), full_state(context), 0).messages[1].content
    assert (sizes == {line for line in whole.splitlines() if "dim=" in line}) is (timed == "small")


def test_an_array_of_weights_is_told_module_by_module(tmp_path):
    names = [f"blocks.{n}.{part}" for n in range(300) for part in ("weight", "bias")]
    weights = tuple(TensorSpec(name, TensorRole.WEIGHT, DType.FLOAT16, (7, n)) for n, name in enumerate(names))
    context = make_context(tmp_path, ScriptedModel(tmp_path / "m", lambda *place: ""), tensors=weights)
    driver = context.problem.driver_path
    plain = generate_request(context, full_state(context), 0).messages[1].content
    driver.write_text(driver.read_text().replace("void* x,", "void* x, void* const* weights,"))
    told = generate_request(context, full_state(context), 0).messages[1].content
    assert "[6] blocks.3: weight [7, 6], bias [7, 7]" in told
    assert "600" in told
    assert "[6] blocks.3" not in plain
    assert len(told) - len(plain) < 12_000


def test_without_evidence_the_prompt_says_so(tmp_path):
    context = make_context(tmp_path, ScriptedModel(tmp_path / "m", lambda *place: ""))
    state = full_state(context)
    fresh = state.model_copy(update={"choice": state.choice.model_copy(update={"evidence_count": 0}), "tried": []})
    text = generate_request(context, fresh, 0).messages[1].content
    assert "62%" in text
    assert "Already tried" not in text


def test_the_same_state_gives_the_same_request(tmp_path):
    context = wordy_context(tmp_path)
    state = full_state(context)
    assert generate_request(context, state, 0) == generate_request(context, state, 0)


def test_a_repair_shows_the_failed_source_and_a_bounded_log(tmp_path):
    context = wordy_context(tmp_path)
    failed = context.files.put_candidate("int broken;\n")
    log = "\n".join(f"line {n}: error: no" for n in range(2000))
    failure = Failure(kind="compile_error", reason="it does not compile", log=log)
    state = full_state(context).model_copy(update={"attempt": Attempt(number=0, candidate=failed, failure=failure)})
    request = generate_request(context, state, 1)
    assert request.messages[2].content == "```cuda\nint broken;\n```"
    assert "line 0: error" in request.messages[3].content
    assert "line 1999: error" in request.messages[3].content
    assert len(request.messages[3].content) < 3200
    assert request.tags["failed_sha256"] == failed


def test_a_missing_value_is_an_error():
    with pytest.raises(jinja2.UndefinedError):
        render("repair", kind="timeout")


def test_prompts_of_a_whole_search_render(tmp_path):
    model = ScriptedModel(tmp_path / "m", lambda rollout, step, attempt: answer(kernel(1.0 + step)))
    asyncio.run(run_problem(make_context(tmp_path, model, steps=2)))
    assert len(model.requests) == 4
    for request in model.requests:
        for message in request.messages:
            assert "{{" not in message.content
            assert "None" not in message.content


def test_a_metric_that_was_not_collected_is_not_mentioned():
    bare = KernelProfile(name="k", grid=(1, 1, 1), block=(32, 1, 1), metrics={str(Metric.DURATION): 2000.0})
    text = profile_summary(evaluation(profile=Profile(source=ProfileSource.NCU, kernels=[bare], totals={})))
    assert text == "1 kernel launch per call (counters: ncu):\n* k <<<1x1x1, 32x1x1>>> 2.00 us"


def test_the_hottest_kernels_come_first():
    shown = [line for line in profile_summary(evaluation(kernels=9)).splitlines() if line.startswith("*")]
    assert ["_8<" in shown[0], "_7<" in shown[1], len(shown)] == [True, True, 3]


def test_without_counters_the_compilers_report_is_shown():
    resources = KernelResources(
        name="k", registers=255, shared_bytes=0, spill_store_bytes=64, spill_load_bytes=64, stack_bytes=0
    )
    text = profile_summary(evaluation(profile=None, resources=[resources]))
    assert "No counters" in text
    assert "255 registers" in text
    assert "spills 64 bytes" in text
    assert time_summary(evaluation(timing=None)) == ""


def test_the_budget_of_an_sm_is_told_in_warps_and_units_of_registers():
    metrics = {str(Metric.REGISTERS_PER_THREAD): 161.0, str(Metric.SHARED_PER_BLOCK): 65536.0}
    one = KernelProfile(name="k", grid=(1, 1, 1), block=(100, 1, 1), metrics=metrics)
    told = budget_summary(evaluation(profile=Profile(source=ProfileSource.NCU, kernels=[one], totals={})), FACTS)
    assert f"{168 * 128} of {FACTS.registers_per_sm}" in told
    assert "128 threads may use up to 255" in told
    wide = one.model_copy(update={"block": (384, 1, 1)})
    told = budget_summary(evaluation(profile=Profile(source=ProfileSource.NCU, kernels=[wide], totals={})), FACTS)
    assert "up to 168" in told
    assert budget_summary(evaluation(profile=None), FACTS) == ""


def test_what_ptxas_complains_of_is_shown():
    resource = KernelResources(
        name="gemm(float*)", registers=168, shared_bytes=0, spill_store_bytes=0, spill_load_bytes=0, stack_bytes=0,
        warnings=("wgmma.mma_async instructions are serialized",),
    )  # fmt: skip
    assert "instructions are serialized" in profile_summary(evaluation(resources=[resource]))


def test_comments_go_and_literals_stay():
    source = 'int a; // one\nconst char* s = "// kept /* too */"; /* two\nlines */ int b;\nchar c = \'"\'; // "x\n'
    assert strip_comments(source) == 'int a;\nconst char* s = "// kept /* too */";   int b;\nchar c = \'"\';'


def test_raw_strings_and_line_continuations():
    assert strip_comments('auto r = R"x(// "kept")x"; // gone \\\nstill gone\nint z;') == (
        'auto r = R"x(// "kept")x";\nint z;'
    )


@given(st.text(alphabet="/*\"'\\\nax()R", max_size=60))
def test_stripping_terminates_and_never_grows(text):
    assert len(strip_comments(text)) <= len(text) + 1


def test_a_reference_that_is_not_python_is_only_cut():
    text = "def f(:\n  x\n" * 100
    assert "1145 of 1200 characters" in trimmed_reference(text, 57)
    assert trimmed_reference(text, 1200) == text
    assert trimmed_reference('"""Doc."""\ndef f():\n    """Doc."""\n', 100) == "def f():\n    pass"


def test_a_reference_keeps_what_is_computed_and_drops_what_is_told_elsewhere():
    text = """SIZES = {"small": {"n": 3}}
EPS = 1e-5
def get_inputs(size="full"):
    return []
def get_init_inputs(size="full"):
    return [SIZES[size]["n"]]
"""
    assert trimmed_reference(text, 500) == (
        "EPS = 1e-05\n\ndef get_init_inputs(size='full'):\n    return [SIZES[size]['n']]"
    )


def test_cutting_the_middle_keeps_both_ends():
    assert cut_middle("short", 10) == "short"
    cut = cut_middle("a" * 50 + "b" * 50, 30)
    assert cut.startswith("a" * 20 + "\n[")
    assert cut.endswith("]\n" + "b" * 10)
