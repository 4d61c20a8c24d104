"""Arithmetic and activation memory of HSTU and of a standard Transformer layer (section 3.3)."""

KINDS = ("hstu", "transformer")


def layer_flops(
    kind: str,
    n: int,
    d: int,
    h: int = 1,
    d_qk: int | None = None,
    d_v: int | None = None,
    d_ff: int | None = None,
) -> int:
    """Forward floating-point operations of one causal layer over n tokens (multiply-add = 2).

    kind "hstu" or "transformer". h heads of widths d_qk and d_v, by default d / h; d_ff, of the
    Transformer's feed-forward layer only, by default 4 d. Causal attention counts the
    n (n + 1) / 2 pairs that it needs. Biases, norms and activations are not counted.
    """
    _check_kind(kind)
    d_qk, d_v = d_qk or d // h, d_v or d // h
    dense = (
        2 * n * d * h * (2 * d_qk + 2 * d_v) + 2 * n * h * d_v * d
        if kind == "hstu"
        else 2 * n * d * h * (2 * d_qk + d_v) + 2 * n * h * d_v * d + 4 * n * d * (d_ff or 4 * d)
    )
    return dense + attention_flops(n, h, d_qk, d_v)


def attention_flops(n: int, h: int, d_qk: int, d_v: int) -> int:
    """Forward operations of the products q k^T and A v over n (n + 1) / 2 causal pairs."""
    return n * (n + 1) * h * (d_qk + d_v)


def training_flops(parameters: int, tokens: int, attention: int) -> int:
    """Forward and backward: 6 per parameter and token, plus 3 times the forward attention's.

    parameters: those that multiply each token (non-embedding weights and the d V of the output).
    """
    return 6 * parameters * tokens + 3 * attention


def activation_bytes_per_token(kind: str, d: int, h: int, d_qk: int, d_v: int) -> int:
    """Bytes of bf16 activations kept for the backward pass, per token and layer.

    HSTU: 2d (input) + 2d (norm) + 4 h d_qk + 4 h d_v (projections) + 2 h d_v (attention output),
    14 d when h d_qk = h d_v = d. A standard Transformer with d_ff = 4 d keeps 33 d.
    """
    _check_kind(kind)
    if kind == "transformer":
        return 33 * d
    return 4 * d + 4 * h * d_qk + 6 * h * d_v


def _check_kind(kind: str) -> None:
    if kind not in KINDS:
        raise ValueError(f"kind must be one of {list(KINDS)}, got {kind!r}")
