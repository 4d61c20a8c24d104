"""The shared data sets, by name as in `results/data/<name>.npz` and by the step that makes them."""

from retable.common.data.fetch import Dataset
from retable.common.data.images import IMAGES
from retable.common.data.molecules import MOLECULES
from retable.common.data.movielens import MOVIELENS
from retable.common.data.proteins import PROTEINS
from retable.common.data.ratings import RATINGS

# A step of its own for each kind: a data set that is new makes none of another kind again.
KINDS: dict[str, tuple[Dataset, ...]] = {
    "images": IMAGES,
    "ratings": (*MOVIELENS, *RATINGS),
    "molecules": MOLECULES,
    "proteins": PROTEINS,
}
DATASETS: dict[str, Dataset] = {
    dataset.name: dataset for datasets in KINDS.values() for dataset in datasets
}
