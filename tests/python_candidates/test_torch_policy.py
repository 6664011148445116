"""What PyTorch answers while a candidate is recorded, on a machine without a GPU."""

from __future__ import annotations

import json
import subprocess
import sys

_PROGRAM = """
import json, torch
from torch._subclasses import fake_tensor
from kernelblaster.python_candidates.plan import RecordedGpu
from kernelblaster.python_candidates.torch_policy import WithoutGpu, stand_in_for_cuda

def no_driver(*device):
    raise RuntimeError("a build of PyTorch for CUDA selects the GPU here")

fake_tensor.init_gpu_context = no_driver
gpu = RecordedGpu(name="G", capability=90, sm_count=7, memory_bytes=1, l2_bytes=1, shared_per_block=1)
stand_in_for_cuda(gpu)
with fake_tensor.FakeTensorMode(), WithoutGpu(), torch.no_grad():
    x = torch.empty((3, 4), dtype=torch.float16, device="cuda")
    moves = [x.cuda(), x.to("cuda"), x.to(device="cuda"), x.to(x.device, non_blocking=True)]
    moves.append(x.to("cuda", torch.float16))
    print(json.dumps({
        "same": all(moved is x for moved in moves),
        "row": list(x[1].shape),
        "half": str(x.cuda().dtype),
        "processors": torch.cuda.get_device_properties(0).multi_processor_count,
    }))
"""


def test_tensors_of_the_gpu_need_none() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, timeout=120, check=True)
    assert json.loads(done.stdout) == {"same": True, "row": [4], "half": "torch.float16", "processors": 7}
