"""Clients with balanced binary labels that stem from different original classes."""

import logging

import numpy as np

_log = logging.getLogger(__name__)


def feature_heterogeneity(
    classes: np.ndarray,
    binary: np.ndarray,
    h: float,
    n_clients: int,
    rng: np.random.Generator,
) -> list[np.ndarray]:
    """The clients' sample indices when a share `h` of the data is split by original class.

    `classes` int (N,), `binary` (N,) of 0 and 1, 0 ≤ h ≤ 1. Of the shuffled samples the first
    round(hN) form the non-iid pool. The iid rest is cut into `n_clients` equal parts; the non-iid
    pool is split by binary label, each half sorted by class (stably) and cut into `n_clients` equal
    parts, of which each client gets its own. What a cut leaves over belongs to no client, so all
    clients have the same size. As in the authors' code.

    Raises ValueError for labels out of range, h outside [0, 1] and fewer samples than clients in a
    pool. A client without both labels is allowed, and logged.
    """
    classes, binary = np.asarray(classes), np.asarray(binary)
    if classes.ndim != 1 or classes.shape != binary.shape:
        raise ValueError(
            f"classes has shape {classes.shape}, binary {binary.shape}; both must be (N,)"
        )
    if not np.issubdtype(classes.dtype, np.integer):
        raise ValueError(f"classes has dtype {classes.dtype}; it must be an integer type")
    if classes.size and (classes.min() < 0 or classes.max() > 9):
        raise ValueError(
            f"classes has values in {classes.min()}..{classes.max()}; they must be in 0..9"
        )
    if not np.isin(binary, (0, 1)).all():
        raise ValueError("binary has values other than 0 and 1")
    if not 0 <= h <= 1:
        raise ValueError(f"h is {h}; it must be in [0, 1]")
    if n_clients < 1:
        raise ValueError(f"n_clients is {n_clients}; it must be at least 1")

    order = rng.permutation(len(classes))
    boundary = round(h * len(classes))
    non_iid, iid = order[:boundary], order[boundary:]
    pools = []
    if h < 1:
        pools.append(("the iid pool", iid))
    if h > 0:
        for label in (0, 1):
            pool = non_iid[binary[non_iid] == label]
            pool = pool[np.argsort(classes[pool], kind="stable")]
            pools.append((f"the non-iid pool of label {label}", pool))
    parts = []
    for name, pool in pools:
        size = len(pool) // n_clients
        if size == 0:
            raise ValueError(
                f"n_clients is {n_clients}; it must not exceed the {len(pool)} samples of {name}"
            )
        parts.append(pool[: size * n_clients].reshape(n_clients, size))
    clients = np.concatenate(parts, axis=1)

    share = binary[clients].mean(1)
    for client in np.flatnonzero((share == 0) | (share == 1)):
        _log.warning("client %d has samples of label %d only", client, share[client])
    return list(clients)
