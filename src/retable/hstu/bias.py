"""Relative attention bias from positions and log-bucketed time gaps, rab^{p,t} (section 3.2)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

# Width of a time bucket in natural-log units. 0.301 is log10(2), yet the logarithm is natural:
# a bucket is a factor exp(0.301) = 1.35 wide, and the published models were trained that way.
LOG_BUCKET_WIDTH = 0.301


def time_bucket(delta: Int[Tensor, "..."], num_buckets: int = 128) -> Int[Tensor, "..."]:
    """Bucket of a time gap: min(num_buckets, floor(ln(max(1, |delta|)) / 0.301)).

    delta: integer seconds of either sign. Returns int64 in 0..num_buckets.
    """
    if num_buckets < 1:
        raise ValueError(f"num_buckets must be at least 1, got {num_buckets}")
    # float64: in float32 a gap of 10^9 s is only known to 64 s, and buckets would depend on it.
    gap = delta.abs().clamp(min=1).to(torch.float64)
    return (gap.log_().div_(LOG_BUCKET_WIDTH)).floor_().clamp_(max=num_buckets).long()


class RelativeBias(nn.Module):
    """rab_ij = w_pos[j - i + N - 1] + w_time[bucket(tau_i - t_j)], one per layer, all heads.

    tau_i is the time of the event to be predicted at slot i (of event i + 1 in training, of the
    request at inference), so that the bias knows how old a key is when the prediction is made.
    Weights: w_pos (2N - 1,), w_time (num_buckets + 1,), normal with std 0.02.
    """

    def __init__(
        self,
        max_len: int,
        num_buckets: int = 128,
        use_time: bool = True,
        use_position: bool = True,
    ) -> None:
        super().__init__()
        if max_len < 1:
            raise ValueError(f"max_len must be at least 1, got {max_len}")
        if not (use_time or use_position):
            raise ValueError("use_time and use_position are both False: leave the bias out instead")
        self.max_len = max_len
        self.num_buckets = num_buckets
        self.w_pos = nn.Parameter(torch.empty(2 * max_len - 1)) if use_position else None
        self.w_time = nn.Parameter(torch.empty(num_buckets + 1)) if use_time else None
        for weight in self.parameters():
            nn.init.normal_(weight, std=0.02)

    def forward(
        self,
        timestamps: Int[Tensor, "B n"],
        target_timestamps: Int[Tensor, "B n"] | None,
    ) -> Float[Tensor, "B n n"]:
        """Bias of every slot (row, as query) towards every slot (column, as key).

        timestamps, target_timestamps: integer seconds. ValueError when n exceeds max_len or when
        the bias uses time and target_timestamps is None.
        """
        n = timestamps.shape[-1]
        if n > self.max_len:
            raise ValueError(f"timestamps hold {n} slots, more than max_len = {self.max_len}")
        positions = torch.arange(n, device=timestamps.device)
        buckets = self.buckets(timestamps, target_timestamps)
        return self.at(positions, positions, buckets).expand(len(timestamps), n, n)

    def buckets(
        self, timestamps: Int[Tensor, "B m"], target_timestamps: Int[Tensor, "B n"] | None
    ) -> Int[Tensor, "B n m"] | None:
        """Time buckets of tau_i - t_j, equal for all layers; None when the bias ignores time."""
        if self.w_time is None:
            return None
        if target_timestamps is None:
            raise ValueError("target_timestamps is None, but the bias uses time: pass (B, n) times")
        return time_bucket(
            target_timestamps.unsqueeze(-1) - timestamps.unsqueeze(-2), self.num_buckets
        )

    def at(
        self,
        query_positions: Int[Tensor, "n"],
        key_positions: Int[Tensor, "m"],
        buckets: Int[Tensor, "B n m"] | None,
    ) -> Float[Tensor, "#B n m"]:
        """Bias of queries at the given positions towards keys at theirs."""
        bias = 0.0
        if self.w_pos is not None:
            offset = key_positions - query_positions.unsqueeze(-1) + self.max_len - 1
            bias = self.w_pos[offset].unsqueeze(0)
        if self.w_time is not None:
            # index_select on the flat view: its backward is one pass of index_add.
            bias = bias + self.w_time.index_select(0, buckets.flatten()).view(buckets.shape)
        return bias
