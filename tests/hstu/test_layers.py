import math

import pytest
import torch
from torch.nn import functional as F

from retable.hstu.layers import (
    HSTULayer,
    HSTUStack,
    SASRecLayer,
    silu_attention,
    softmax_attention,
)


def draw(*shape, seed=0, dtype=torch.float64):
    return torch.randn(
        *shape, generator=torch.Generator().manual_seed(seed), dtype=dtype
    ).requires_grad_()


def test_silu_attention_vector():
    q = torch.tensor([1.0, 2]).view(1, 1, 2, 1)
    k = torch.tensor([1.0, 1]).view(1, 1, 2, 1)
    v = torch.tensor([3.0, 5]).view(1, 1, 2, 1)
    out = silu_attention(q, k, v, mask="causal", scale=0.5)
    torch.testing.assert_close(out.flatten(), torch.tensor([1.096588, 7.046376]))


@pytest.mark.parametrize("block_size", [None, 1, 3, 64])
@pytest.mark.parametrize("masking", ["causal", "tensor"])
@pytest.mark.parametrize("with_bias", [False, True])
def test_silu_attention_against_loops_and_its_gradients(block_size, masking, with_bias):
    q, k, v = draw(2, 2, 5, 3), draw(2, 2, 7, 3, seed=1), draw(2, 2, 7, 4, seed=2)
    bias = draw(2, 1, 5, 7, seed=3) if with_bias else None
    tensor = torch.rand(2, 1, 5, 7, generator=torch.Generator().manual_seed(4)) < 0.6
    mask = "causal" if masking == "causal" else tensor
    out = silu_attention(q, k, v, mask=mask, bias=bias, scale=0.1, block_size=block_size)
    for b in range(2):
        for h in range(2):
            for i in range(5):
                row = torch.zeros(4, dtype=torch.float64)
                for j in range(7):
                    if masking == "causal" and j > i + 2:
                        continue
                    if masking == "tensor" and not tensor[b, 0, i, j]:
                        continue
                    score = q[b, h, i] @ k[b, h, j] + (bias[b, 0, i, j] if with_bias else 0)
                    row = row + 0.1 * score / (1 + torch.exp(-score)) * v[b, h, j]
                torch.testing.assert_close(out[b, h, i], row)

    def value(q, k, v, *bias):
        return silu_attention(
            q,
            k,
            v,
            mask=mask,
            bias=bias[0] if bias else None,
            scale=0.1,
            block_size=block_size,
        )

    assert torch.autograd.gradcheck(value, (q, k, v, bias) if with_bias else (q, k, v))


@pytest.mark.parametrize("shape", [(1, 1, 6, 6), (2, 3, 6, 6), (1, 3, 6, 6), (2, 1, 6, 6)])
def test_tiled_bias_gradient_keeps_the_broadcast_shape(shape):
    q, k, v = draw(2, 3, 6, 4), draw(2, 3, 6, 4, seed=1), draw(2, 3, 6, 4, seed=2)
    bias = draw(*shape, seed=3)
    grads = []
    for block_size in (None, 4):
        out = silu_attention(q, k, v, mask="causal", bias=bias, scale=0.3, block_size=block_size)
        grads.append(torch.autograd.grad((out**2).sum(), (q, k, v, bias)))
    for plain, tiled in zip(*grads, strict=True):
        torch.testing.assert_close(plain, tiled)


def test_softmax_masks_before_normalising():
    q, k, v = draw(1, 1, 4, 3), draw(1, 1, 4, 3, seed=1), draw(1, 1, 4, 2, seed=2)
    bias = draw(1, 1, 4, 4, seed=3)
    out = softmax_attention(q, k, v, mask="causal", bias=bias)
    for i in range(4):
        scores = (k[0, 0, : i + 1] @ q[0, 0, i] + bias[0, 0, i, : i + 1]) / math.sqrt(3)
        torch.testing.assert_close(out[0, 0, i], scores.softmax(0) @ v[0, 0, : i + 1])


@pytest.mark.parametrize("n", [4, 2])
def test_softmax_paths_agree(n):
    q, k, v = draw(1, 2, n, 3), draw(1, 2, 4, 3, seed=1), draw(1, 2, 4, 2, seed=2)
    zero = torch.zeros(1, 1, n, 4, dtype=torch.float64)
    mask = torch.ones(n, 4, dtype=torch.bool).tril(4 - n)
    expected = softmax_attention(q, k, v, mask=mask)
    torch.testing.assert_close(softmax_attention(q, k, v, mask="causal"), expected)
    torch.testing.assert_close(softmax_attention(q, k, v, mask="causal", bias=zero), expected)
    torch.testing.assert_close(softmax_attention(q, k, v, mask=mask, bias=zero), expected)


def test_intensity_is_seen_by_silu_and_normalised_away_by_softmax():
    q, k, v = draw(1, 1, 1, 4), draw(1, 1, 6, 4, seed=1), draw(1, 1, 6, 3, seed=2)
    k2, v2 = k.repeat(1, 1, 2, 1), v.repeat(1, 1, 2, 1)
    once = torch.ones(1, 6, dtype=torch.bool)
    twice = torch.ones(1, 12, dtype=torch.bool)
    silu = silu_attention(q, k, v, mask=once, scale=0.01)
    torch.testing.assert_close(silu_attention(q, k2, v2, mask=twice, scale=0.01), 2 * silu)
    softmax = softmax_attention(q, k, v, mask=once)
    torch.testing.assert_close(softmax_attention(q, k2, v2, mask=twice), softmax)


@pytest.mark.parametrize("attention", ["silu", "softmax"])
def test_layer_follows_the_equations(attention):
    torch.manual_seed(0)
    d, h, d_qk, d_v, n, max_len = 6, 2, 3, 4, 5, 9
    layer = HSTULayer(d, h, d_qk, d_v, 0.5, max_len, attention).double().eval()
    with torch.no_grad():
        layer.w1.normal_()
    x, bias = draw(1, n, d), draw(1, n, n, seed=1)
    z = F.silu(F.layer_norm(x, (d,), eps=1e-6) @ layer.w1)[0]
    u, v, q, k = z[:, :8], z[:, 8:16], z[:, 16:22], z[:, 22:28]
    parts = []
    for head in range(h):
        scores = (
            q[:, head * d_qk : (head + 1) * d_qk] @ k[:, head * d_qk : (head + 1) * d_qk].T
            + bias[0]
        )
        allowed = torch.ones(n, n, dtype=torch.bool).tril()
        if attention == "silu":
            a = F.silu(scores) / max_len * allowed
        else:
            a = (scores / math.sqrt(d_qk)).masked_fill(~allowed, -math.inf).softmax(-1)
        parts.append(a @ v[:, head * d_v : (head + 1) * d_v])
    o = torch.cat(parts, dim=1)
    y = (F.layer_norm(o, (8,), eps=1e-6) * u) @ layer.w2.weight.T + layer.w2.bias + x[0]
    torch.testing.assert_close(layer(x, bias=bias)[0], y)
    assert torch.autograd.gradcheck(lambda x, bias: layer(x, bias=bias), (x, bias))


def test_layer_initialisation():
    torch.manual_seed(0)
    layer = HSTULayer(64, 2, 32, 32, 0.0, 10)
    assert layer.w1.shape == (64, 256)
    assert abs(layer.w1.std().item() - 0.02) < 5e-4
    assert layer.w2.weight.abs().max() <= math.sqrt(6 / 128)
    assert sorted(name for name, _ in layer.named_parameters()) == ["w1", "w2.bias", "w2.weight"]


def test_layer_tiled_is_untiled_in_training_too():
    torch.manual_seed(0)
    layer = HSTULayer(8, 2, 4, 4, 0.0, 20).double()
    x = draw(2, 20, 8)
    grads = [
        torch.autograd.grad(layer(x, block_size=block).sum(), [x, *layer.parameters()])
        for block in (None, 7)
    ]
    for plain, tiled in zip(*grads, strict=True):
        torch.testing.assert_close(plain, tiled)


def test_sasrec_layer_follows_its_equations():
    torch.manual_seed(0)
    layer = SASRecLayer(8, 2, 12, 0.3).double().eval()
    x = draw(1, 5, 8)
    q = F.layer_norm(x, (8,), eps=1e-8)
    wq, wk, wv = layer.w_qkv.chunk(3)

    def heads(z):
        return z.view(1, 5, 2, 4).transpose(1, 2)

    a = softmax_attention(heads(q @ wq.T), heads(x @ wk.T), heads(x @ wv.T), mask="causal")
    m = a.transpose(1, 2).flatten(2) @ layer.w_attended.weight.T
    r = F.layer_norm(q + m, (8,), eps=1e-8)
    torch.testing.assert_close(layer(x), r + layer.w_out(F.relu(layer.w_in(r))))


def test_sasrec_drops_attention_out():
    torch.manual_seed(0)
    layer = SASRecLayer(8, 2, 12, 0.5)
    # With the feed-forward path and its dropout silenced, attention's own is what remains.
    with torch.no_grad():
        layer.w_out.weight.zero_()
        layer.w_out.bias.zero_()
    x = torch.randn(1, 5, 8)
    assert not torch.equal(layer(x), layer(x))
    assert torch.equal(layer.eval()(x), layer(x))


def test_bad_input():
    q = torch.zeros(1, 1, 3, 2)
    with pytest.raises(ValueError, match="attention must be one of"):
        HSTULayer(4, 1, 4, 4, 0.0, 4, attention="linear")
    with pytest.raises(ValueError, match=r"bias must be one of .* got 'time'"):
        HSTUStack(1, 4, 1, 4, 4, 0.0, 4, bias="time")
    with pytest.raises(ValueError, match="mask must be a bool tensor or 'causal', got 'none'"):
        silu_attention(q, q, q, mask="none", scale=1.0)
    with pytest.raises(ValueError, match=r"got dtype torch\.float32"):
        softmax_attention(q, q, q, mask=torch.ones(3, 3))
    with pytest.raises(ValueError, match="got 2 keys for 3 queries"):
        silu_attention(q, q[:, :, :2], q[:, :, :2], mask="causal", scale=1.0)
    with pytest.raises(ValueError, match="block_size must be at least 1 or None, got 0"):
        silu_attention(q, q, q, mask="causal", scale=1.0, block_size=0)
    with pytest.raises(ValueError, match="n_heads must divide d_model = 8, got 3"):
        SASRecLayer(8, 3, 8, 0.0)
    with pytest.raises(ValueError, match="timestamps is None"):
        HSTUStack(1, 4, 1, 4, 4, 0.0, 4)(torch.zeros(1, 2, 4), None, None)
