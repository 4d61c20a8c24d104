"""The shared data sets by name, as in `results/data/<name>.npz`."""

from retable.common.data.fetch import Dataset
from retable.common.data.images import CIFAR10, FASHION_MNIST, MNIST
from retable.common.data.movielens import MOVIELENS_1M, MOVIELENS_20M, MOVIELENS_100K
from retable.common.data.ratings import AMAZON_BOOKS

DATASETS: dict[str, Dataset] = {
    dataset.name: dataset
    for dataset in (
        *(MNIST, FASHION_MNIST, CIFAR10),
        *(MOVIELENS_100K, MOVIELENS_1M, MOVIELENS_20M, AMAZON_BOOKS),
    )
}
