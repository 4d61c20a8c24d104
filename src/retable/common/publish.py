"""Copy what a laptop run made to `published/`, where visitors of the repository see it.

Run by `make publish`, after the run: so the copies are those of the code as it stands. Costs are
left out, since they tell of the machine.
"""

import shutil
import sys
from pathlib import Path

PATTERNS = ("table_*.csv", "figure_*.png", "claims.csv", "claims_checks.csv")


def publish(results: Path, published: Path) -> list[Path]:
    """Replace the copies in `published` by the files in `results`; return what was copied.

    FileNotFoundError when there is no laptop result, so that nothing is thrown away for nothing.
    """
    found = [path for pattern in PATTERNS for path in sorted(results.glob(pattern))]
    if not found:
        raise FileNotFoundError(f"{results}: there are no tables to publish; run snakemake first")
    published.mkdir(exist_ok=True)
    for pattern in PATTERNS:
        for old in published.glob(pattern):
            old.unlink()
    return [Path(shutil.copyfile(path, published / path.name)) for path in found]


if __name__ == "__main__":
    try:
        copied = publish(Path("results/laptop"), Path("published"))
    except FileNotFoundError as error:
        sys.exit(str(error))
    print(f"published/: {len(copied)} files")
