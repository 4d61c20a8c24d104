# `make run` makes all tables, figures and claims at laptop scale; `make test` runs the tests.
# Both set up all that they need in .venv from requirements.lock.
PYTHON ?= python3
BIN := .venv/bin
# Cores for the tests that run in parallel.
JOBS ?= auto

.PHONY: run test lint publish lock clean

run: .venv/ready
	$(BIN)/snakemake

test: .venv/ready
	$(BIN)/python -m pytest -n $(JOBS) -m "not slurm"

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check workflow/Snakefile rules
	$(BIN)/snakemake --lint

# Copies what a laptop run made to published/, where visitors and `git diff` see it.
publish: run
	$(BIN)/python -m retable.common.publish

# Writes the versions that are installed now; run it after a change of pyproject.toml.
lock: .venv/ready
	$(BIN)/pip install --quiet --editable '.[methods,workflow,test]'
	{ echo "# Exact versions of everything; made by 'make lock' from pyproject.toml."; \
	  $(BIN)/pip freeze --exclude-editable | sed -E 's/\+cpu$$//' | grep -viE '^(pip|wheel)==' | sort -f; } > requirements.lock

.venv/ready: requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "retable needs Python 3.11 or newer")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	touch $@

clean:
	rm -rf .venv results .snakemake
