"""Backbones of the training and test structures, from the published files."""

from pathlib import Path

from retable.common.data.arrays import save_arrays
from retable.common.data.bundles import read_bundle
from retable.common.errors import InputError
from retable.evorank.config import StructuresSettings
from retable.evorank.files import backbone_arrays, own_path
from retable.evorank.structure import TEST_STRUCTURES, read_structure, structure_of

_ENDING = "_target.pdbqt"


def structures(
    targets: Path,
    assays: Path,
    ubiquitin: Path,
    own: list[Path],
    training: Path,
    test: Path,
    *,
    settings: StructuresSettings,
) -> None:
    """Write the backbones to train on and those of the assays.

    `own` is the user's structure of GB1, if one is named; it is called `GB1`.
    """
    files = read_bundle(targets) | read_bundle(assays) | read_bundle(ubiquitin)
    names = sorted(name.removesuffix(_ENDING) for name in files if name.endswith(_ENDING))
    if settings.proteins is not None:
        unknown = sorted(set(settings.proteins) - set(names))
        if unknown:
            raise InputError(
                f"config/evorank.yaml, structures: proteins: '{unknown[0]}': must be one of "
                f"{', '.join(names)}"
            )
        names = list(settings.proteins)
    try:
        found = {name: structure_of(files, name) for name in (*names, *TEST_STRUCTURES)}
        tested = {name: structure_of(files, name) for name in (*TEST_STRUCTURES, *settings.tested)}
        if settings.gb1 is not None:
            tested["GB1"] = read_structure(own_path(settings.gb1, "gb1", "a structure of GB1"))
    except ValueError as error:
        raise InputError(str(error)) from None
    save_arrays(training, backbone_arrays({name: found[name] for name in names}))
    save_arrays(test, backbone_arrays(tested))
