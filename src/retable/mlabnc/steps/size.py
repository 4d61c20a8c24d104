"""Count what a frozen classifier with d = K saves in the paper's networks."""

from pathlib import Path

from retable.common.metrics import write_metrics
from retable.mlabnc.config import SizeSettings
from retable.mlabnc.models import build, count_trainable


def size(rows: Path, *, settings: SizeSettings) -> None:
    """Write trainable parameters, learned and fixed, and the saving in percent."""
    found = []
    for network in settings.networks:
        learned, fixed = (
            count_trainable(
                build(
                    network, 3, settings.num_classes, dim, dim is not None,
                    image_size=32, feature_relu=True,
                )
            )
            for dim in (None, settings.num_classes)
        )  # fmt: skip
        values = {
            "parameters_learned": learned,
            "parameters_fixed": fixed,
            "saving_percent": 100 * (1 - fixed / learned),
        }
        found += [
            {
                "experiment": "size",
                "dataset": "cifar10",
                "method": network,
                "metric": metric,
                "value": value,
            }
            for metric, value in values.items()
        ]
    write_metrics(found, rows)
