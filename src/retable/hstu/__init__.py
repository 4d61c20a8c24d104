"""HSTU: recommendation as sequential transduction (Generative Recommenders).

J. Zhai, L. Liao, X. Liu, Y. Wang, R. Li, X. Cao, L. Gao, Z. Gong, F. Gu, M. He, Y. Lu, Y. Shi.
*Actions Speak Louder than Words: Trillion-Parameter Sequential Transducers for Generative
Recommendations.* ICML 2024, PMLR 235. arXiv 2402.17152.

A user's life is one time-ordered stream of items and actions; retrieval predicts the next item,
ranking predicts the action at a candidate's slot. The encoder replaces softmax attention by a
pointwise SiLU (how often something happened stays visible), biases it by position and by
log-bucketed time, and gates its output in place of a feed-forward layer.

    >>> import torch
    >>> from retable.hstu import HSTU, HSTUConfig
    >>> model = HSTU(HSTUConfig(n_items=100, max_len=20, d_model=32, n_blocks=2, n_heads=2,
    ...                         d_qk=16, d_v=16)).eval()
    >>> ids, times = torch.tensor([[5, 3, 9, 0]]), torch.tensor([[0, 60, 3600, 0]])
    >>> next_times = torch.tensor([[60, 3600, 7200, 0]])  # the last one: when you ask
    >>> model.encode(ids, times, next_times).shape
    torch.Size([1, 4, 32])

Basis: official code (public experiments), summaries of the text (synthetic stream, Stochastic
Length, M-FALCON).
"""

import lazy_loader as lazy

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    submod_attrs={
        "bias": ["RelativeBias", "time_bucket"],
        "cost": ["activation_bytes_per_token", "attention_flops", "layer_flops", "training_flops"],
        "data": [
            "Batch",
            "Interactions",
            "Sequence",
            "Split",
            "build_sequences",
            "collate",
            "keep_core",
            "leave_last",
            "load_amazon_books",
            "load_movielens",
            "pack_sequences",
            "relabel_items",
            "unpack_sequences",
        ],
        "evaluation": ["held_out_ranks"],
        "inference": ["History", "KVCache", "encode_with_cache", "m_falcon"],
        "layers": ["HSTULayer", "HSTUStack", "SASRecLayer", "silu_attention", "softmax_attention"],
        "losses": ["full_softmax", "sampled_softmax"],
        "metrics": ["hit_rate", "mrr", "ndcg", "ndcg_gains", "normalized_entropy", "target_rank"],
        "models": [
            "DLRM",
            "HSTU",
            "DLRMConfig",
            "GRRanker",
            "GRRankerConfig",
            "GRU4Rec",
            "GRU4RecConfig",
            "HSTUConfig",
            "Popularity",
            "PopularityConfig",
            "SASRec",
            "SASRecConfig",
            "SequenceEncoder",
        ],
        "sampling": ["keep_probability", "short_length", "sparsity", "stochastic_length"],
        "synthetic": ["DirichletStream"],
    },
)
