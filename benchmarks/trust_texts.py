"""What docs/trust.md says in words: what remains possible, what is not planted, which tests hold rules of figures."""

from __future__ import annotations

NOT_PLANTED = {
    "T04": "Lazy results need an object that computes when it is compared. A candidate gets raw device pointers; of "
    "Triton modules see P02.",
    "T06": "Statistics are computed in the judge's process, which never runs a candidate.",
    "T17": "A time of zero, or below the floor, is refused: `tests/adversarial/test_reporting.py`.",
    "T21": "Tuning inside a call is timed like anything else; an honest kernel that tunes in its first call passes.",
    "T22": "Luck: `tests/adversarial/test_reporting.py` compares a kernel with itself 300 times; finalists are "
    "measured again.",
    "V07": "There is no counter of errors in a candidate's process.",
    "V09": "There is no reference to fall back to: nothing of it is linked. Of PyTorch in Triton modules see P06.",
    "V10": "A class that inherits from the reference: no process of a candidate holds the reference.",
}
"""Rows of the catalogue that no planted kernel stands for, and why."""

REPORTING = {
    "R01": "means over problems are geometric; every problem has its row",
    "R02": "a problem without a final kernel stays in the table and in the mean, where it counts as 1",
    "R03": "the better of PyTorch eager and torch.compile is the baseline, in the run's precision",
    "R04": "baselines are sampled in turns with the kernels, on the same GPU, never read from a file",
    "R05": "the ratio to the start stands beside those to eager and compile",
    "R06": "times below the roofline floor are refused",
    "R07": "statistics name the device kind and architecture they come from; measured and modelled ones never merge",
    "R08": "every final kernel of the published results is in the repository",
    "D01": "`kernelblaster problems audit` refuses problems that a trivial kernel would pass",
}
"""Rows about figures and problems -> the rule. `tests/adversarial/test_reporting.py` says which test holds us to it."""

IN_SAMPLE = (
    "This suite is in-sample: its authors know the judge. What it says of attacks that nobody has thought of is "
    "little. An earlier judge refused every exploit of its suite and let 19 of 43 through that others had "
    "written without seeing it; kernels `N01` to `N13` were then written from the mechanisms of those, with "
    "knowledge of the rules and not of the present defence: 54 of 202 came through that earlier judge on the "
    "emulated device, and 21 stopped it. `N18` is of the packets between judge and harness: on the emulated "
    "device the judge of the day before called `N18_serves_the_judge_itself` correct and 2.01 times as fast; "
    "the others of `N18` gained nothing there, where no clock is read. For an estimate out of sample, have "
    "somebody write attacks who knows `tests/adversarial` and not `devices/harness`, judge them once, and "
    "publish all outcomes before anything is mended."
)
"""What the suite is evidence of."""
BLIND = (
    "Authors who knew the rules of the game and had read neither the judge nor the planted kernels wrote these. "
    "Every outcome of the first judgement is shown, and what it led to. `correct` in bold is called correct and "
    "faster than the same kernel without the trick, or than the problem's start where there is no such kernel. "
    "At first the first two rounds were cut short by the time on the GPU; judged again after what they led to, "
    "the second was judged whole, and of the first all but one kernel. The third was judged whole on "
    "2026-11-29, and all of it again on that and the following day after what it led to, on one of several GPUs "
    "of a machine while a search ran on others: all 11 honest kernels are correct; of the two exploits that had "
    "come through, `R301` is harmless and `R342` came through once more, at 1.02x, and was harmless at 1.02x "
    "(0.997 to 1.044) when it was judged a third time; the other 28 are refused or harmless as before. The "
    "fourth and the fifth were judged first on the emulated device, on 2026-11-30, so that clocks had no part "
    "in them: 4 of 28 and 6 of 16 exploits came through, by mistakes that no judged call met. The fifth asked "
    "for such mistakes alone. Two of the fourth are refused since then; of the fifth two are, in some runs; the "
    "others are left, as their notes say. Ten of the fourth and four of the fifth were judged on an H200 as "
    "well: no exploit came through. Six authors of the sixth wrote 23 exploits, judged on the emulated device "
    "on 2026-11-30: of 12 against the process, the clock and the state between calls and of 3 in Triton none "
    "came through, of 8 that compute something else 4 did. Of 13 honest kernels by three others 11 passed. Of "
    "22 exploits that five authors wrote for the seventh, judged there on the same day, 1 came through (`R715`; "
    "refused since then, in some runs); 6 honest kernels of a sixth author are correct. The eighth, of "
    "2026-12-01, was judged there, too: of 10 exploits that compute something else 5 came through, of 5 against "
    "process, state and clock one was called faster for another reason than its trick, and 6 of 6 honest "
    "kernels are correct. Of those five, one is refused since. The seventh and the eighth were judged whole on an "
    "H200 as well, later on that day: none of the seventh came through, four of the eighth did, among them "
    "`R825`, whose trick works there. The ninth, of one author on the same day, who had read parts of the "
    "emulator and none of the planted kernels, was judged on the emulated device: of 17 exploits one came "
    "through (`R904`; refused since), and 5 of 5 honest kernels are correct."
)
"""What became of the rounds that others wrote."""

RESIDUAL = """\
## What remains possible

A candidate's host code runs in the process that times it. No check inside that process can be made tamper-proof, and we
do not claim so. What stands between such code and a wrong figure:

- Values cannot be forged this way: outputs are compared in another process, with a reference that the candidate's
  process never holds. Files of the call's own inputs are open in it, for reading.
- On the emulated device times come from a report that the emulator writes in the candidate's process. Its descriptors
  are written from one instruction of the emulator and closed by nobody; what it was told lies in memory that stays as
  it is; programs find none of its inner functions by name; and the harness, in a sealed reply, says how many bytes it
  has reported: a file of another length is a `reward_hack` (`N13`). Until 2026-12-01 none of this held: a candidate
  that closed the report between a copy and its product was called correct and 2.97 times as fast, and so was one that
  asked the emulator by name to report nothing. The planted exploits of that time looked for names that the emulator no
  longer had.
- What the emulator counts is no proof against an enemy all the same: its memory lies in the candidate's process, open
  but for its settings. On that day an author who read its code had thirteen kernels called 1.3 to 8 times as fast, two
  of them by documented functions alone, and at a size that is sampled two called up to 24.7 times as fast; there a
  third left out most of its work (31x). Since then a call of which nothing was seen is refused, the clock's
  functions cannot be replaced, handles lead to nothing, work of the host counts once it has waited for the GPU, and a
  sample of blocks is of SMs that the program cannot know. Left are: a launch beside hidden work, where the emulator's
  own figures or flags are found in memory; memory of the device that the host reaches at its address there; managed
  memory that the host writes before the first launch (2.99x); and outputs at sizes that are sampled, which are not
  judged. Modelled times are for finding one's way: nothing that we call measured rests on them.
- Replies of the harness are sealed by a keyed hash over the packet and a number that counts them. The judge sends the
  key before a candidate is loaded, it lies in memory that is closed while the candidate's code runs, and the socket is
  read and written by two instructions of the harness alone. A reply without its seal is a `reward_hack`. Who runs
  while that memory is open could read the key and then answer what he likes, and compute only what is asked for:
  no candidate can start a thread, but threads of the driver, and those of the emulated device, sleep on stacks that
  it can write to; and pointers to functions lie in memory of the CUDA runtime and the driver, which the harness calls
  between a candidate's calls. Who turns these needs no key: he can have work done when outputs are copied. The suite
  holds no exploit that does this.
- Host code runs under a filter of system calls and finds neither files nor network, processes nor threads, by whatever
  name it asks for them. The filter does not stop what needs no system call: a pointer of one's own making reaches all
  memory of the process, the GPU driver's too, and the filter is no stronger than the kernel that enforces it. Under a
  profiler or a sanitizer, and in problems whose driver judges itself, there is no filter.
- The assembler may embed any file that the compiler is shown (`N04`): the toolkit, programs, headers and libraries of
  the system. Settings, `/proc`, `/sys`, homes and other sources are not there.
- What the harness keeps (its stack with the clocks' readings, requests and replies, events) lies in pages that are
  closed while code of a candidate runs; the filter lets the harness' own gate alone open and close them (`N15`). Open
  they are to kernels that are still running when a call has returned, on a GPU that reads pageable host memory; and
  the gate is written for x86-64 alone. The memory of the CUDA runtime and the driver, of the C library, and of the
  emulated device's core stays open, and with it the events there, whose handles can be guessed from one's own. `T08`
  moves the events and the host clock where it finds them. The judge's own clock, in another process, says that a call
  took longer than the harness claims, to a tenth or 50 us. Where that is too coarse, calls below 100 us, and for
  finalists and gains above 3x, the judge times batches of calls by its own clock alone
  (`evaluation/timing/batch_rule.py`), each call on values and outputs of its own. A claim is refused when a call of a
  batch takes longer than the events say by more than 15 % or 2 us, whichever is more, and noise; otherwise it is
  credited with what batches bear out: who moves events gains 1 % and what noise leaves open, in all some 2 % of a call
  above 60 us, 3 % of 40 us, 5 % of 20 us and 9 to 12 % of 9 us. Finalists are measured against the honest start, so
  that such gains do not add up over generations. A kernel whose host code asks for streams of its own is credited
  with what batches say and no more: work on such a stream can begin before the start event (`R301`), and in batches
  that gains nothing. An honest kernel with streams loses that allowance and nothing else; as batches are the coarser
  clock, that is 1 % or more of the claim in one comparison of twenty between 20 and 60 us, and more for shorter
  calls. Gains below 3x of calls above 100 us are confirmed for finalists alone; `R301`'s gain of some 2 us is 2 % at
  most of these. The per-thread default stream has a constant for its handle, which no object has to ask for: work on
  it can begin as early, and is allowed what every kernel is (`N12_begins_early_on_the_threads_stream`: harmless,
  0.99x).
- Lines that a call leaves in L2 by a priority (`evict_last`) could be what the next call reads. Before each flush
  lines that persist are made usual ones (CUDA's own library makes lines persist by that very priority), and timed
  calls find their tensors in two places in turns. Three sittings had `R342` at 1.04x (1.01 to 1.07; one place), 1.02x
  (1.002 to 1.120; two places) and 1.02x (0.997 to 1.044; two places). What it gains by is no line that survives: `N20`
  differs from its twin by the priority alone and gains 1.0 % (0.7 to 1.3 in 18 settings of `benchmarks/l2_priority.cu`
  with lines reset, [figures](results/l2_priority_h200.txt)) with one, two and eight places alike, where eight hold
  eight times what L2 does; surviving lines would bring 15 % and more. It gains 0.2 % (-0.1 to 0.6) where the flush ends
  by reading. A flush leaves L2 full of written lines, and one that makes room in a call has to be written back; the
  priority, as a hint that lines are the first to go, is about which are. Such hints are an honest kernel's, too, and a
  flush that reads would take their gain from all alike, but written lines are what a kernel finds behind another one.
  It is less than what one comparison tells from none: of nine that judged `N20` one called it faster, at 1.025x (1.001
  to 1.050), eight did not (1.002x to 1.020x).
- Who guesses how many calls a batch has could put calls off and make several in one launch, as long as the last call
  of the batch makes all that are left: cheaper than calls one by one for the shortest of kernels, and only of use to
  one who moves events as well.
- Sizes are judged where they are cheap. Undeclared extents are about as small as the small size: a kernel that is wrong
  only beyond all declared ones (an index of 32 bits, a bound of 2^22) is called correct (`R413`), and on the emulated
  device, which judges outputs at no declared size but the small one, so is one that is wrong at the larger declared
  ones (`R416`).
- Parameters such as windows and strides have two other values each in judged calls, one of them drawn anew in every
  run: a kernel that is wrong for a combination of them, or for larger ones, is refused in some runs alone, `R502` in
  about 30 % of draws and `R504` in about 48 %. Where later steps hide an earlier one, a kernel that samples the earlier
  one is called correct (`R511`).
- No judged input is NaN: customary kernels take maxima and rectify by `fmaxf`, which drops it where PyTorch passes it
  on. Where the reference of infinite inputs is NaN, an output may hold anything; elsewhere it must hold NaN, too.
  Infinities are judged where a problem defines what becomes of them (a sum or a product of infinities may be
  anything), at the timed size where each sample of an input decides its own part of the outputs.
- A path for the timed shape meets one input set, a mixture (`N19`), and perturbations of it. Parameters such as windows
  and epsilons are there what is declared. Integers without declared bounds are no others than those that the problem
  draws, a part of them in order. Squares that overflow fp16 leave the targets of a loss plain there.
- Who takes some elements for all passes where the others do not matter. At the timed size short pieces at random places
  decide sums, moments and maxima of samples that are otherwise even (`N16`); in a call that happens to see the piece of
  each such sample, a kernel that then looks at everything is right.
- Where a reference takes more than 1 GiB, timed calls are judged in pieces: 256 MiB of it, whole rows at random places,
  other ones for each call. Where no room is left for the outputs of three calls, one is judged, the evaluation says so,
  and whether judged calls take longer than others is not asked.
- Modelled times on the emulated device add what the host works beyond 500 us per call (`N13`): less than that is free
  there, as long as the host has not waited for the GPU; afterwards 20 us are. Host code that writes to memory of the
  device ends the counted call, unless there is more than 512 MiB of it. It can read that memory, and what it writes to
  memory that both share costs a copy over the bus and back. There a launch is over when it returns, so that
  host code which does not wait finds results that a GPU would not have yet.
- A candidate may behave otherwise when a profiler or a sanitizer is attached. The reward is the time without either.
- Races that the hardware never shows in the calls that were judged pass. Sanitizers look at finalists only, and
  compute-sanitizer finds races in shared memory, not in global memory. The emulated device interrupts warps after a few
  instructions and runs four blocks side by side while it verifies, from two to six parts of the grid where a kernel
  does not look at what others do (`N21`), so that most races show; each launch has one such order. Where the code of a
  kernel holds a `volatile` load, an atomic of floats or one whose result is read, be it in a branch that nobody takes,
  blocks begin one after the other, and neighbours alone meet: four distant blocks that add to one sum through
  `volatile` pointers are called correct.
- A result kept under a hash of all inputs is right when the same inputs come again. Timed calls never see the same
  values twice, so that nothing is gained here; an application may.
- Tensors of which no other values can be derived (trees, sorted starts of rows) are halved in timed calls or stay as
  they are: what was computed from these alone may be kept. Verified calls have others.
- Values at a border that a problem draws are seldom drawn: `>` for `>=` beside a threshold passed, and so did squares
  rounded to 24 bits beside a circle.
- A kernel may be wrong for shapes that are neither declared nor the undeclared ones (rows shorter than a vector in a
  softmax, for instance), and for values beyond the distributions.
- Errors that a result's own rounding covers pass: of one number that is a mean of many, say. In rows of 128 elements
  and more of a 16-bit result, errors of one sign are added up and judged, too
  (`evaluation/correctness/error_budget.py`).
- A candidate that keeps a compiler busy, or the process that records a Python candidate, has up to 300 s and 16 GiB for
  it; candidates beside it are built more slowly meanwhile. Nothing bounds the processor time that one asker takes.
- The process that records a Python candidate sees what is installed beside it, this package with its recordings and
  kernels among it. What it copies from there, or has PyTorch's own compiler write, is judged and timed as its own.
"""
