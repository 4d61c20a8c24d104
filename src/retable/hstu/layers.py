"""The HSTU layer (section 3, equations 1-3), its pointwise attention, and the SASRec block."""

import math
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from retable.hstu.bias import RelativeBias

ATTENTIONS = ("silu", "softmax")
BIASES = ("position+time", "position", None)


def silu_attention(
    q: Float[Tensor, "B h n d_qk"],
    k: Float[Tensor, "B h m d_qk"],
    v: Float[Tensor, "B h m d_v"],
    *,
    mask: Bool[Tensor, "#B #h n m"] | Literal["causal"],
    bias: Float[Tensor, "#B #h n m"] | None = None,
    scale: float,
    block_size: int | None = None,
) -> Float[Tensor, "B h n d_v"]:
    """Pointwise attention O = (mask * scale * SiLU(q k^T + bias)) v  (equation 2).

    scale is 1/N with N the fixed maximum length: dividing by the actual length would undo the
    signal of how often something happened. mask: True where the query may see the key, or
    "causal": row i of n sees keys 0 .. m - n + i. block_size tiles the rows, forward and backward,
    so that memory is O(n * block_size) instead of O(n^2), and skips keys that "causal" hides; the
    result is the same (Rabe and Staats's trick, simpler here as nothing needs normalising).
    """
    _check_mask(mask, q, k)
    if block_size is None:
        return (_masked(F.silu(_scores(q, k, bias)), mask) @ v) * scale
    if block_size < 1:
        raise ValueError(f"block_size must be at least 1 or None, got {block_size}")
    return _TiledSiLUAttention.apply(q, k, v, bias, mask, scale, block_size)


def softmax_attention(
    q: Float[Tensor, "B h n d_qk"],
    k: Float[Tensor, "B h m d_qk"],
    v: Float[Tensor, "B h m d_v"],
    *,
    mask: Bool[Tensor, "#B #h n m"] | Literal["causal"],
    bias: Float[Tensor, "#B #h n m"] | None = None,
) -> Float[Tensor, "B h n d_v"]:
    """softmax((q k^T + bias) / sqrt(d_qk)) v, hidden keys removed before the softmax.

    Shapes and mask as in `silu_attention`; every row must see at least one key.
    """
    _check_mask(mask, q, k)
    n, m = q.shape[-2], k.shape[-2]
    if bias is None and isinstance(mask, str):
        if n == m:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        mask = torch.ones(n, m, dtype=torch.bool, device=q.device).tril(m - n)
    if bias is None:
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    additive = _masked_softmax_bias(bias / math.sqrt(q.shape[-1]), mask, n, m)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=additive)


def _check_mask(mask: Tensor | str, q: Tensor, k: Tensor) -> None:
    if isinstance(mask, str):
        if mask != "causal":
            raise ValueError(f"mask must be a bool tensor or 'causal', got {mask!r}")
        if q.shape[-2] > k.shape[-2]:
            raise ValueError(
                f"a causal mask needs at least as many keys as queries, got {k.shape[-2]} keys "
                f"for {q.shape[-2]} queries"
            )
    elif mask.dtype != torch.bool:
        raise ValueError(f"mask must be a bool tensor or 'causal', got dtype {mask.dtype}")


def _scores(q: Tensor, k: Tensor, bias: Tensor | None) -> Tensor:
    scores = q @ k.transpose(-1, -2)
    return scores if bias is None else scores + bias


def _masked(scores: Tensor, mask: Tensor | str) -> Tensor:
    """Zero where a key is hidden; under "causal" the last row sees every column."""
    if isinstance(mask, str):
        return scores.tril(scores.shape[-1] - scores.shape[-2])
    return scores * mask


def _masked_softmax_bias(bias: Tensor, mask: Tensor | str, n: int, m: int) -> Tensor:
    if isinstance(mask, str):
        mask = torch.ones(n, m, dtype=torch.bool, device=bias.device).tril(m - n)
    return torch.where(mask, bias, -math.inf)


class _TiledSiLUAttention(torch.autograd.Function):
    """Row-tiled `silu_attention`; the backward pass recomputes each tile's scores."""

    @staticmethod
    def forward(ctx, q, k, v, bias, mask, scale, block_size):
        tensor_mask = None if isinstance(mask, str) else mask
        ctx.save_for_backward(q, k, v, bias, tensor_mask)
        ctx.scale, ctx.block_size = scale, block_size
        out = q.new_empty(*q.shape[:-1], v.shape[-1])
        for rows, cols, hidden in _tiles(q, k, tensor_mask, block_size):
            scores = _scores(q[..., rows, :], k[..., cols, :], _tile(bias, rows, cols))
            weights = _masked(F.silu(scores, inplace=True), hidden)
            out[..., rows, :] = weights @ v[..., cols, :]
        return out.mul_(scale)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_out):
        q, k, v, bias, tensor_mask = ctx.saved_tensors
        grad_out = grad_out * ctx.scale
        grad_q, grad_k, grad_v = torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(v)
        needs_bias = bias is not None and ctx.needs_input_grad[3]
        grad_bias = torch.zeros_like(bias) if needs_bias else None
        for rows, cols, hidden in _tiles(q, k, tensor_mask, ctx.block_size):
            g = grad_out[..., rows, :]
            scores = _scores(q[..., rows, :], k[..., cols, :], _tile(bias, rows, cols))
            weights = _masked(F.silu(scores), hidden)
            grad_v[..., cols, :] += weights.transpose(-1, -2) @ g
            del weights
            through = _masked(g @ v[..., cols, :].transpose(-1, -2), hidden)
            through = torch.ops.aten.silu_backward(through, scores)
            grad_q[..., rows, :] = through @ k[..., cols, :]
            grad_k[..., cols, :] += through.transpose(-1, -2) @ q[..., rows, :]
            if needs_bias:
                target = grad_bias[..., rows, cols]
                target += through.sum_to_size(target.shape)
        return grad_q, grad_k, grad_v, grad_bias, None, None, None


def _tiles(q: Tensor, k: Tensor, mask: Tensor | None, block_size: int):
    """Row slices with the key slice that each can see and its mask."""
    n, m = q.shape[-2], k.shape[-2]
    for start in range(0, n, block_size):
        stop = min(start + block_size, n)
        rows = slice(start, stop)
        if mask is None:
            # The causal edge of the tile's last row is the tile's last column.
            yield rows, slice(0, m - n + stop), "causal"
        else:
            yield rows, slice(0, m), mask[..., rows, :]


def _tile(bias: Tensor | None, rows: slice, cols: slice) -> Tensor | None:
    return None if bias is None else bias[..., rows, cols]


class HSTULayer(nn.Module):
    """One HSTU layer on x (B, n, d_model), pre-norm and residual (equations 1-3).

    [U, V, Q, K] = SiLU(LN(x) W1);  O = SiLU(Q K^T + rab) V / N;  y = W2 dropout(LN(O) * U) + x.
    Layer norms have no learned scale (eps 1e-6). attention="softmax" swaps the SiLU of the second
    equation for a softmax. max_len is N; sequences are left-aligned, padded at the end, so under
    the causal mask no valid slot ever sees padding.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        d_qk: int,
        d_v: int,
        dropout: float,
        max_len: int,
        attention: str = "silu",
    ) -> None:
        super().__init__()
        if attention not in ATTENTIONS:
            raise ValueError(f"attention must be one of {list(ATTENTIONS)}, got {attention!r}")
        self.n_heads, self.d_qk, self.d_v = n_heads, d_qk, d_v
        self.max_len = max_len
        self.attention = attention
        self.w1 = nn.Parameter(torch.empty(d_model, n_heads * (2 * d_v + 2 * d_qk)))
        nn.init.normal_(self.w1, std=0.02)
        self.w2 = nn.Linear(n_heads * d_v, d_model)
        nn.init.xavier_uniform_(self.w2.weight)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Float[Tensor, "B n d"],
        *,
        mask: Bool[Tensor, "#B #h n n"] | Literal["causal"] = "causal",
        bias: Float[Tensor, "#B n n"] | None = None,
        block_size: int | None = None,
    ) -> Float[Tensor, "B n d"]:
        """The layer's output; block_size tiles the SiLU attention (memory O(n * block_size))."""
        u, v, q, k = self.project(x)
        return self.combine(x, self.attend(q, k, v, mask, bias, block_size), u)

    def project(
        self, x: Float[Tensor, "B n d"]
    ) -> tuple[
        Float[Tensor, "B n hdv"],
        Float[Tensor, "B h n d_v"],
        Float[Tensor, "B h n d_qk"],
        Float[Tensor, "B h n d_qk"],
    ]:
        """U, V, Q, K = split(SiLU(LN(x) W1))  (equation 1)."""
        z = F.silu(F.layer_norm(x, x.shape[-1:], eps=1e-6) @ self.w1)
        wide_v, wide_qk = self.n_heads * self.d_v, self.n_heads * self.d_qk
        u, v, q, k = z.split([wide_v, wide_v, wide_qk, wide_qk], dim=-1)
        return u, self._heads(v), self._heads(q), self._heads(k)

    def attend(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | Literal["causal"],
        bias: Tensor | None = None,
        block_size: int | None = None,
    ) -> Float[Tensor, "B n hdv"]:
        """O = A V with A pointwise or softmax (equation 2); bias (B, n, m) is shared by heads."""
        if bias is not None:
            bias = bias.unsqueeze(1)
        if self.attention == "silu":
            o = silu_attention(
                q, k, v, mask=mask, bias=bias, scale=1 / self.max_len, block_size=block_size
            )
        else:
            o = softmax_attention(q, k, v, mask=mask, bias=bias)
        return o.transpose(1, 2).flatten(2)

    def combine(
        self, x: Float[Tensor, "B n d"], o: Float[Tensor, "B n hdv"], u: Float[Tensor, "B n hdv"]
    ) -> Float[Tensor, "B n d"]:
        """y = W2 dropout(LN(O) * U) + b2 + x  (equation 3)."""
        return self.w2(self.dropout(F.layer_norm(o, o.shape[-1:], eps=1e-6) * u)) + x

    def _heads(self, z: Tensor) -> Tensor:
        return z.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)


class HSTUStack(nn.Module):
    """n_blocks HSTU layers, each with its own relative bias (or none).

    bias: "position+time" (rab^{p,t}), "position" (rab^p) or None (the paper's "-rab").
    """

    def __init__(
        self,
        n_blocks: int,
        d_model: int,
        n_heads: int,
        d_qk: int,
        d_v: int,
        dropout: float,
        max_len: int,
        attention: str = "silu",
        bias: str | None = "position+time",
    ) -> None:
        super().__init__()
        if bias not in BIASES:
            raise ValueError(f"bias must be one of {list(BIASES)}, got {bias!r}")
        self.max_len = max_len
        self.layers = nn.ModuleList(
            HSTULayer(d_model, n_heads, d_qk, d_v, dropout, max_len, attention)
            for _ in range(n_blocks)
        )
        self.biases = nn.ModuleList(
            RelativeBias(max_len, use_time=bias == "position+time")
            for _ in range(n_blocks if bias else 0)
        )

    def forward(
        self,
        x: Float[Tensor, "B n d"],
        timestamps: Int[Tensor, "B n"] | None,
        target_timestamps: Int[Tensor, "B n"] | None,
        block_size: int | None = None,
    ) -> Float[Tensor, "B n d"]:
        """Causal pass over embedded tokens; times in integer seconds, as in `RelativeBias`."""
        positions = torch.arange(x.shape[1], device=x.device)
        rows = self.bias_rows(positions, positions, timestamps, target_timestamps)
        for layer, bias in zip(self.layers, rows, strict=True):
            x = layer(x, bias=bias, block_size=block_size)
        return x

    def bias_rows(
        self,
        query_positions: Int[Tensor, "n"],
        key_positions: Int[Tensor, "m"],
        timestamps: Int[Tensor, "B m"] | None,
        target_timestamps: Int[Tensor, "B n"] | None,
    ) -> list[Float[Tensor, "#B n m"] | None]:
        """Each layer's bias of the queries towards the keys; the time buckets are shared."""
        if not self.biases:
            return [None] * len(self.layers)
        if self.biases[0].w_time is None:
            return [bias.at(query_positions, key_positions, None) for bias in self.biases]
        if timestamps is None:
            raise ValueError("timestamps is None, but the bias uses time: pass (B, n) times")
        buckets = self.biases[0].buckets(timestamps, target_timestamps)
        return [bias.at(query_positions, key_positions, buckets) for bias in self.biases]


class SASRecLayer(nn.Module):
    """The self-attention block of SASRec on x (B, n, d_model), causal.

    q = LN(x); r = LN(q + MHA(q, x, x)); y = r + dropout(W dropout(ReLU(W' r))). Layer norms have
    no learned scale (eps 1e-8); attention weights are dropped out like the rest.
    """

    def __init__(self, d_model: int, n_heads: int, d_ff: int, dropout: float) -> None:
        super().__init__()
        if d_model % n_heads:
            raise ValueError(f"n_heads must divide d_model = {d_model}, got {n_heads}")
        self.n_heads = n_heads
        # Query, key and value weights are one matrix, and are initialised as one.
        self.w_qkv = nn.Parameter(torch.empty(3 * d_model, d_model))
        self.b_qkv = nn.Parameter(torch.zeros(3 * d_model))
        self.w_attended = nn.Linear(d_model, d_model)
        self.w_in = nn.Linear(d_model, d_ff)
        self.w_out = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)
        for weight in self.parameters():
            if weight.ndim > 1:
                nn.init.xavier_normal_(weight)
        nn.init.zeros_(self.w_attended.bias)

    def forward(self, x: Float[Tensor, "B n d"]) -> Float[Tensor, "B n d"]:
        """The block's output; padding at the end is never seen by a valid slot."""
        d = x.shape[-1]
        normed = F.layer_norm(x, (d,), eps=1e-8)
        q = F.linear(normed, self.w_qkv[:d], self.b_qkv[:d])
        k, v = F.linear(x, self.w_qkv[d:], self.b_qkv[d:]).chunk(2, dim=-1)
        m = F.scaled_dot_product_attention(
            *(z.unflatten(-1, (self.n_heads, -1)).transpose(1, 2) for z in (q, k, v)),
            is_causal=True,
            dropout_p=self.dropout.p if self.training else 0.0,
        )
        r = normed + self.w_attended(m.transpose(1, 2).flatten(2))
        r = F.layer_norm(r, (d,), eps=1e-8)
        return r + self.dropout(self.w_out(self.dropout(F.relu(self.w_in(r)))))
