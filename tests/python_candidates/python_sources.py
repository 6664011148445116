"""Python candidates for `fixtures/problems/vector_add`: an honest one, and those that try to gain by other means."""

from __future__ import annotations

from textwrap import dedent

from kernelblaster.python_candidates.plan import RefusalKind

HEAD = dedent(
    """\
    import torch
    import triton
    import triton.language as tl


    @triton.jit
    def add_kernel(x, y, out, n, factor, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        total = tl.load(x + at, mask=at < n).to(tl.float32) + tl.load(y + at, mask=at < n).to(tl.float32)
        tl.store(out + at, (factor * total).to(out.dtype.element_ty), mask=at < n)


    class Base(torch.nn.Module):
        def __init__(self, factor):
            super().__init__()
            self.factor = factor

        def add(self, x, y, out):
            add_kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](
                x, y, out, x.numel(), self.factor, BLOCK=256
            )
            return out


    """
)


def candidate(forward: str, before: str = "") -> str:
    """A module whose `forward` has this body."""
    body = "\n".join(f"        {line}" for line in dedent(forward).strip().splitlines())
    return f"{HEAD}{dedent(before)}\n\nclass ModelNew(Base):\n    def forward(self, x, y):\n{body}\n"


HONEST = candidate("return self.add(x, y, torch.empty_like(x))")

HARMLESS = {
    "patched clocks": candidate(
        "return self.add(x, y, torch.empty_like(x))",
        """
        import time
        time.perf_counter = time.time = lambda: 0.0
        torch.cuda.synchronize = torch.cuda.Event = torch.Tensor.__eq__ = lambda *a, **k: None
        """,
    ),
    "facts about the GPU": candidate(
        """
        assert x.is_cuda and x.device.type == "cuda" and torch.cuda.is_available()
        assert torch.cuda.get_device_properties(x.device).multi_processor_count == 132
        torch.cuda.synchronize()
        assert x[None, 5:, ...].shape == (1, 2996) and x[..., ::2].stride() == (2,) and x[3].dim() == 0
        return self.add(x.view(-1), y.reshape(-1).contiguous(), torch.empty_like(x, device="cuda"))
        """
    ),
}
"""Recorded as the honest one is: there is nothing for them to reach."""

REFUSED: dict[str, tuple[RefusalKind, str]] = {
    "torch for the answer": (RefusalKind.OPERATOR, candidate("return self.factor * (x + y)")),
    "torch behind a decoy": (
        RefusalKind.OPERATOR,
        candidate("self.add(x, y, torch.empty_like(x))\nreturn self.factor * torch.add(x, y)"),
    ),
    "torch as a fallback": (
        RefusalKind.OPERATOR,
        candidate(
            "out = self.add(x, y, torch.empty_like(x))\ntry:\n    x + y\nexcept Exception:\n    pass\nreturn out"
        ),
    ),
    "torch in an autograd function": (
        RefusalKind.OPERATOR,
        candidate(
            "return Sum.apply(x, y)",
            """
            class Sum(torch.autograd.Function):
                @staticmethod
                def forward(context, x, y):
                    return x + y
            """,
        ),
    ),
    "torch in an operator of its own": (
        RefusalKind.OPERATOR,
        candidate(
            "return torch.ops.own.sum(x, y)",
            """
            @torch.library.custom_op("own::sum", mutates_args=())
            def own_sum(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
                return x + y
            @own_sum.register_fake
            def _(x, y):
                return torch.empty_like(x)
            """,
        ),
    ),
    "a branch on values": (
        RefusalKind.OPERATOR,
        candidate("return self.add(x, y, torch.empty_like(x)) if x[0].item() > 0 else x"),
    ),
    "a copy": (RefusalKind.OPERATOR, candidate("return x.clone()")),
    "filled with a number": (RefusalKind.OPERATOR, candidate("return torch.full_like(x, 0.5)")),
    "an input returned": (RefusalKind.OUTPUT, candidate("return x")),
    "a view of an input": (RefusalKind.OUTPUT, candidate("return x.view(-1)")),
    "the input overwritten": (RefusalKind.OUTPUT, candidate("return self.add(x, y, x)")),
    "a result kept": (
        RefusalKind.OUTPUT,
        candidate(
            "if not hasattr(self, 'kept'):\n    self.kept = self.add(x, y, torch.empty_like(x))\nreturn self.kept"
        ),
    ),
    "an answer of the constructor's": (
        RefusalKind.OUTPUT,
        candidate(
            "return self.answer",
            """
            class Ready(Base):
                def __init__(self, factor):
                    super().__init__(factor)
                    self.answer = torch.rand(3001)
            Base = Ready
            """,
        ),
    ),
    "a lazy tensor": (
        RefusalKind.OUTPUT,
        candidate(
            "return Lazy(lambda: self.add(x, y, torch.empty_like(x)))",
            """
            class Lazy:
                def __init__(self, compute):
                    self.compute = compute
                def __torch_function__(self, func, types, args=(), kwargs=None):
                    return func(self.compute(), *args[1:], **(kwargs or {}))
            """,
        ),
    ),
    "no tensor": (RefusalKind.OUTPUT, candidate("return None")),
    "another type": (RefusalKind.OUTPUT, candidate("return torch.empty(x.shape, dtype=torch.int32, device=x.device)")),
    "a stream of its own": (
        RefusalKind.LAUNCH,
        candidate("with torch.cuda.stream(torch.cuda.Stream()):\n    return self.add(x, y, torch.empty_like(x))"),
    ),
    "compiled by torch": (RefusalKind.LAUNCH, candidate("return torch.compile(lambda: x + y)()")),
    "CUDA in files": (
        RefusalKind.LAUNCH,
        candidate("from torch.utils.cpp_extension import load\nreturn load(name='own', sources=['own.cu'])"),
    ),
    "a call count": (
        RefusalKind.UNSTABLE,
        candidate(
            "self.calls = getattr(self, 'calls', 0) + 1\nout = torch.empty_like(x)\n"
            "return self.add(x, y, out) if self.calls == 1 else out"
        ),
    ),
    "no ModelNew": (RefusalKind.MODULE, HEAD + "class Model(Base):\n    pass\n"),
    "weights of its own": (
        RefusalKind.MODULE,
        candidate(
            "return self.add(x, y, torch.empty_like(x))",
            """
            class Weighted(Base):
                def __init__(self, factor):
                    super().__init__(factor)
                    self.weight = torch.nn.Parameter(torch.ones(3))
            Base = Weighted
            """,
        ),
    ),
    "an exception": (RefusalKind.EXCEPTION, candidate("raise ValueError('of its own')")),
    "a kernel that does not compile": (
        RefusalKind.EXCEPTION,
        candidate("return self.add(x, y, torch.empty_like(x))").replace("tl.load(x + at", "tl.nothing(x + at"),
    ),
}
"""What each is refused for, and its source."""
