"""PyTorch's compiler is loaded where it is used, and nowhere else."""

import subprocess
import sys

PREPARE = """
import sys
import torch
from retable.common.compiler import defer_compiler
defer_compiler()
def loaded():
    return "torch._dynamo.eval_frame" in sys.modules
"""
TRAIN = """
from retable.common.training import minibatches, train
x = torch.arange(8.0)[:, None]
def trained():
    torch.manual_seed(0)
    net = torch.nn.Linear(1, 1)
    optimizer = torch.optim.AdamW(net.parameters(), lr=0.1)
    train(net, optimizer, lambda net, rows: net(x[rows]).square().mean(), minibatches(8, 4, 0),
          epochs=3, clip_norm=1.0)
    return net.weight.item()
"""


def in_new_process(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_training_does_not_load_it():
    weight, was_loaded = in_new_process(f"{PREPARE}{TRAIN}print(repr(trained()), loaded())").split()
    assert was_loaded == "False"
    # With the compiler at hand the training comes out the same.
    plain = "import torch\nimport torch._dynamo\n"
    assert in_new_process(f"{plain}{TRAIN}print(repr(trained()))") == weight


def test_it_is_loaded_where_something_is_compiled():
    code = """
before = trained()
double = torch.compile(lambda x: 2 * x, backend="eager")
assert torch.equal(double(x), 2 * x) and loaded()
assert trained() == before
print("right")
"""
    assert in_new_process(PREPARE + TRAIN + code) == "right"


def test_its_modules_can_be_imported_first():
    code = """
import torch._dynamo.aot_compile_types as first
assert loaded() and sys.modules["torch._dynamo.aot_compile_types"] is first
assert first is torch._dynamo.aot_compile_types and first.__spec__.origin == first.__file__
assert not [part for part in sys.meta_path if type(part).__module__.startswith("retable")]
print("right")
"""
    assert in_new_process(PREPARE + code) == "right"


def test_one_that_is_loaded_already_stays():
    code = """
import torch._dynamo
before = torch._dynamo
defer_compiler()
print(torch._dynamo is before and sys.modules["torch._dynamo"] is before)
"""
    plain = PREPARE.replace("defer_compiler()\n", "", 1)
    assert in_new_process(plain + code) == "True"
