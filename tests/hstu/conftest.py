import numpy as np
import pytest
import torch

from retable.hstu.data import Sequence
from retable.hstu.models import (
    HSTU,
    GRU4Rec,
    GRU4RecConfig,
    HSTUConfig,
    SASRec,
    SASRecConfig,
)

N_ITEMS = 30
MAX_LEN = 12


def build(name: str, seed: int = 0, max_len: int = MAX_LEN, **changes) -> torch.nn.Module:
    torch.manual_seed(seed)
    if name == "gru4rec":
        return GRU4Rec(GRU4RecConfig(N_ITEMS, max_len, 16, **changes)).eval()
    if name == "sasrec":
        return SASRec(SASRecConfig(N_ITEMS, max_len, 16, 2, 2, 24, **changes)).eval()
    softmax = {"attention": "softmax"} if name == "hstu-softmax" else {}
    model = HSTU(HSTUConfig(N_ITEMS, max_len, 16, 2, 2, 6, 5, **softmax, **changes)).eval()
    with torch.no_grad():  # biases at their initial 0.02 would hide mistakes below the tolerance
        for bias in model.stack.biases:
            for weight in bias.parameters():
                weight.normal_()
        for layer in model.stack.layers:
            layer.w1.normal_(std=0.3)
    return model


MODELS = ("hstu", "hstu-softmax", "sasrec", "gru4rec")


@pytest.fixture(params=MODELS)
def model(request):
    return build(request.param)


@pytest.fixture
def tokens():
    """Ids, times and target times of 3 users with 9 events each."""
    generator = torch.Generator().manual_seed(5)
    ids = torch.randint(1, N_ITEMS + 1, (3, 9), generator=generator)
    times = torch.randint(0, 10**6, (3, 10), generator=generator).cumsum(1)
    return ids, times[:, :-1], times[:, 1:]


@pytest.fixture
def sequences():
    rng = np.random.default_rng(3)
    return [
        Sequence(
            user,
            rng.permutation(N_ITEMS)[:n].astype(np.int64) + 1,
            rng.integers(1, 6, n),
            rng.integers(0, 1000, n).cumsum(),
        )
        for user, n in ((1, 8), (2, 14), (3, 21))
    ]
