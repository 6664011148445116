# problem: level1/95
# precision: fp32
# kind: honest
# expects: correct: int32 ticket allocated in __init__ but zeroed by the first kernel of each call; last program adds up; 0-d output
# size: small
import torch
import triton
import triton.language as tl

ROWS_PER_PROGRAM = 256


@triton.heuristics({
    "BLOCK": lambda args: min(4096, max(32, triton.next_power_of_2(args["classes"]))),
    "num_warps": lambda args: 8 if args["classes"] > 2048 else 4,
})
@triton.jit
def row_kernel(x_ptr, target_ptr, loss_ptr, ticket_ptr, classes, stride_row, stride_class, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    if row == 0:
        tl.store(ticket_ptr, 0)  # for the next kernel: nothing is kept from an earlier call
    base = x_ptr + row.to(tl.int64) * stride_row
    columns = tl.arange(0, BLOCK)
    top = tl.full((BLOCK,), float("-inf"), dtype=tl.float32)
    for start in range(0, classes, BLOCK):
        c = start + columns
        v = tl.load(base + c * stride_class, mask=c < classes, other=float("-inf")).to(tl.float32)
        top = tl.maximum(top, v)
    largest = tl.max(top, axis=0)
    shift = tl.where(largest == float("-inf"), 0.0, largest)
    sums = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, classes, BLOCK):
        c = start + columns
        v = tl.load(base + c * stride_class, mask=c < classes, other=float("-inf")).to(tl.float32)
        sums += tl.exp(v - shift)
    target = tl.load(target_ptr + row)
    chosen = tl.load(base + target * stride_class).to(tl.float32)
    tl.store(loss_ptr + row, (shift - chosen) + tl.log(tl.sum(sums, axis=0)))


@triton.jit
def mean_kernel(loss_ptr, partial_ptr, ticket_ptr, out_ptr, rows, programs,
                BLOCK: tl.constexpr, BLOCK_P: tl.constexpr):
    pid = tl.program_id(0)
    i = pid * BLOCK + tl.arange(0, BLOCK)
    mine = tl.sum(tl.load(loss_ptr + i, mask=i < rows, other=0.0), axis=0)
    tl.store(partial_ptr + pid, mine)
    tl.debug_barrier()
    arrived = tl.atomic_add(ticket_ptr, 1, sem="acq_rel", scope="gpu")
    if arrived == programs - 1:  # all the others have stored theirs
        total = tl.zeros((BLOCK_P,), dtype=tl.float32)
        for start in range(0, programs, BLOCK_P):
            j = start + tl.arange(0, BLOCK_P)
            total += tl.load(partial_ptr + j, mask=j < programs, other=0.0, volatile=True)
        mean = tl.sum(total, axis=0) / rows
        tl.store(out_ptr, mean.to(out_ptr.dtype.element_ty))


class ModelNew(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        # An integer, so that .half() leaves it alone; not part of the state_dict.
        self.register_buffer("ticket", torch.empty(1, dtype=torch.int32), persistent=False)

    def _ticket(self, device: torch.device) -> torch.Tensor:
        if self.ticket.device != device:
            self.ticket = torch.empty(1, dtype=torch.int32, device=device)
        return self.ticket

    def forward(self, predictions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        rows, classes = predictions.shape
        programs = triton.cdiv(rows, ROWS_PER_PROGRAM)
        ticket = self._ticket(predictions.device)
        scratch = torch.empty(rows + programs, device=predictions.device, dtype=torch.float32)
        loss, partial = scratch[:rows], scratch[rows:]
        out = torch.empty((), device=predictions.device, dtype=predictions.dtype)
        row_kernel[(rows,)](predictions, targets, loss, ticket, classes, *predictions.stride())
        mean_kernel[(programs,)](loss, partial, ticket, out, rows, programs, BLOCK=ROWS_PER_PROGRAM, BLOCK_P=128)
        return out
