"""Copies of one model, one for each client, that compute together."""

import copy

import torch
from jaxtyping import Bool, Shaped
from torch import Tensor, nn
from torch.func import functional_call


def average_states(
    states: list[dict[str, Tensor]], weights: list[float] | None = None
) -> dict[str, Tensor]:
    """The average of state dictionaries: parameters and float buffers; of integer buffers the max.

    `weights` (equal if None) are normalised to sum 1. Raises ValueError for no states, states that
    differ in names or shapes, and weights that are negative or sum to 0.
    """
    if not states:
        raise ValueError("states is empty; it must hold at least one state")
    shapes = {name: value.shape for name, value in states[0].items()}
    for i, state in enumerate(states[1:], start=1):
        if {name: value.shape for name, value in state.items()} != shapes:
            raise ValueError(f"states[{i}] differs from states[0] in its names or shapes")
    if weights is None:
        weights = [1.0] * len(states)
    if len(weights) != len(states):
        raise ValueError(f"weights has {len(weights)} entries; it must have {len(states)}")
    share = torch.as_tensor(weights, dtype=torch.float64)
    if not (share >= 0).all() or not 0 < share.sum() < float("inf"):
        raise ValueError(f"weights is {list(weights)}; they must be ≥ 0 with a positive sum")
    share = share / share.sum()
    return {
        name: _average(torch.stack([state[name] for state in states]), share) for name in shapes
    }


def _average(stacked: Tensor, share: Tensor) -> Tensor:
    if not stacked.is_floating_point():
        return stacked.amax(0)
    # Float64 sums make the average independent of the clients' order to float32's precision.
    share = share.to(stacked.device)
    return torch.tensordot(share, stacked.double(), dims=1).to(stacked.dtype)


class ClientStack(nn.Module):
    """`n_clients` copies of `model` with their own parameters and buffers, run as one.

    Parameters and buffers have a leading client axis; an operation on the copies is one batched
    operation (convolutions become grouped convolutions), batch normalisation included. All copies
    start from the state of `model`, which is left as it is.
    """

    def __init__(self, model: nn.Module, n_clients: int) -> None:
        if n_clients < 1:
            raise ValueError(f"n_clients is {n_clients}; it must be at least 1")
        super().__init__()
        self.n_clients = n_clients
        # A list hides the template from registration: it lends its code, not its numbers.
        self._template = [copy.deepcopy(model).to("meta")]
        self._names = {}
        for name, value in model.named_parameters():
            stacked = value.detach().repeat(n_clients, *[1] * value.ndim)
            self.register_parameter(self._register(name), nn.Parameter(stacked))
        for name, value in model.named_buffers():
            self.register_buffer(self._register(name), value.repeat(n_clients, *[1] * value.ndim))
        self.train(model.training)

    def _register(self, name: str) -> str:
        # torch takes no dot in a parameter's name, and "/" cannot be part of an attribute.
        self._names[name] = name.replace(".", "/")
        return self._names[name]

    def _stacked(self) -> dict[str, Tensor]:
        return {name: getattr(self, registered) for name, registered in self._names.items()}

    def train(self, mode: bool = True) -> "ClientStack":
        """Set training mode, as for any module."""
        self._template[0].train(mode)
        return super().train(mode)

    def forward(self, x: Shaped[Tensor, "clients batch *shape"]) -> Shaped[Tensor, "clients ..."]:
        """Each copy's output for its own batch."""
        if len(x) != self.n_clients:
            raise ValueError(f"x has batches for {len(x)} clients; it must have {self.n_clients}")

        def one(state: dict[str, Tensor], batch: Tensor) -> Tensor:
            return functional_call(self._template[0], state, (batch,))

        return torch.vmap(one, randomness="different")(self._stacked(), x)

    @torch.no_grad()
    def average(self, *, buffers: bool) -> None:
        """Set all copies' parameters, and their buffers if asked, to the average over copies."""
        share = torch.full((self.n_clients,), 1 / self.n_clients, dtype=torch.float64)
        for value in self.parameters():
            value.copy_(_average(value, share).expand_as(value))
        if buffers:
            for value in self.buffers():
                value.copy_(_average(value, share).expand_as(value))

    def state(self, client: int) -> dict[str, Tensor]:
        """A copy of one client's state, under the names that `model` gives."""
        return {name: value[client].detach().clone() for name, value in self._stacked().items()}

    def nonfinite(self) -> Bool[Tensor, "clients"]:
        """Which clients have a weight that is NaN or infinite."""
        return torch.stack([~w.isfinite().flatten(1).all(1) for w in self.parameters()]).any(0)
