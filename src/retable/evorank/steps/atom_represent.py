"""What the atom-level representations hold of positions that were not trained on."""

from pathlib import Path

from accelerate import Accelerator

from retable.common.metrics import write_metrics
from retable.evorank.atom_data import HELD_OUT, TRAINING, AtomPositions
from retable.evorank.atom_networks import load_atom_networks
from retable.evorank.atom_training import atom_embeddings, atom_logits, score_atom_positions
from retable.evorank.baselines import blosum62
from retable.evorank.config import AtomRepresentSettings
from retable.evorank.measures import HELD_OUT as DATASET
from retable.evorank.representation import masked_accuracy, pair_accuracy, participation_ratio


def atom_represent(
    positions: list[Path],
    model: Path,
    rows: Path,
    *,
    method: str,
    settings: AtomRepresentSettings,
) -> None:
    """Write masked accuracy, order of pairs and participation ratio of each seed's network.

    The files of the wild-type networks also hold BLOSUM62's order of pairs, which has no seed.
    """
    training = AtomPositions(positions, TRAINING, settings.positions)
    held = AtomPositions(positions, HELD_OUT, settings.positions)
    wildtype, p = held.wildtype.numpy(), held.p.numpy()
    networks, about, mutations = load_atom_networks(model)
    seen = {"environment": about.method.environment, "batch": settings.batch}
    found: list[tuple[str, int | None, str, float]] = []

    def add_pairs(method: str, seed: int | None, scores) -> None:
        both = pair_accuracy(scores, p, wildtype, settings.least_difference)
        names = ("pair_accuracy", "pair_accuracy_no_wildtype")
        found.extend((method, seed, *pair) for pair in zip(names, both, strict=True))

    for seed, network in networks.items():
        network = network.to(Accelerator().device)
        add_pairs(method, seed, score_atom_positions(network, held, mutations=mutations, **seen))
        if not mutations:
            named = atom_logits(network, held, **seen).argmax(1)
            found.append((method, seed, "own_accuracy", float((named == wildtype).mean())))
        if not about.method.environment:
            continue  # one constant vector holds nothing of a position
        e_held = atom_embeddings(network, held, **seen)
        found.append((method, seed, "participation_ratio", participation_ratio(e_held)))
        accuracy = masked_accuracy(
            atom_embeddings(network, training, **seen),
            training.wildtype.numpy(),
            e_held,
            wildtype,
            settings.regression_steps,
        )
        found.append((method, seed, "masked_accuracy", accuracy))
    if method == "wildtype":
        add_pairs("blosum62", None, blosum62()[wildtype])
    write_metrics(
        (
            {
                "experiment": "held_out",
                "dataset": DATASET,
                "method": name,
                "seed": seed,
                "metric": metric,
                "value": value,
            }
            for name, seed, metric, value in found
        ),
        rows,
    )
