# Two commands on a fresh machine: `make demo` and `make test`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.bakeoff-installed

.PHONY: setup demo test test-fast test-engines papers check bench truth truth-here gauntlet mutations gpu-day gallery screenshots clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Bakeoff needs Python 3.11 or later; $$($(PYTHON) --version) was found. Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@echo "Setting up Bakeoff in $(VENV) …"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@
	@echo "Done. The command is $(BIN)/bakeoff"

demo: setup
	@$(BIN)/bakeoff run quickstart --create-environments

test: setup check
	@$(BIN)/python -m tests.build_environments
	@$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m 'not long'

test-fast: setup
	@$(BIN)/python -m pytest -m 'not slow and not framework and not browser and not engine and not io and not gauntlet' -n auto

# Everything that needs pretended hosts, as root: an MPI, Slurm, containers, Horovod built from its
# source, nodes that lose their power, cables that are pulled. Half an hour, with the environments.
test-engines: setup
	@$(BIN)/bakeoff env create torch tensorflow jax mpi torch@horovod tensorflow@horovod
	@BAKEOFF_REQUIRE_ENGINES=1 $(BIN)/python -m pytest -m engine

# Every paper's study at smoke size: here, with storage tiers that are held back; and those about nodes
# on pretended ones under Slurm, bare and in an image; at paper size what a model can play of them.
# `docs/papers.md` has what came out.
papers: setup
	@failed=0; for part in "papers" "engines.papers wang2018 --containers" \
	    "engines.papers shams2017 --containers" "engines.papers bae2019" "engines.papers lee2021" \
	    "papers.played_runs"; do $(BIN)/python -m tests.$$part || failed=1; done; exit $$failed

check: setup
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/python -m pytest -q tests/architecture tests/contracts

bench: setup
	@$(BIN)/python -m tests.bench

# The method against simulated studies whose truth is known: forty minutes of one core.
# What was interrupted goes on where it was.
truth: setup
	@$(BIN)/python -m tests.stats.truth_table --studies 10000

# The method against real runs on this machine, which should be idle: ten minutes.
truth-here: setup
	@$(BIN)/python -m tests.stats.real_runs runs/truth-here

# Kills, failing input and output, damaged and hostile files: three hours of two cores at most.
# What was interrupted goes on where it was.
gauntlet: setup
	@$(BIN)/python -m tests.gauntlet --minutes 180

# Every fault that is planted in a framework, and what catches it; and clean networks, over ten seeds
# each: 35 minutes of two cores. What was interrupted goes on where it was, and LANES tests run side
# by side; the tables are build/mutations/table.md.
mutations: LANES ?= 2
mutations: setup
	@$(BIN)/python -m tests.mutations --lanes $(LANES)

# What Bakeoff promises of GPUs, shown on one, step by step and without a network: docs/gpu-day.md.
# PYTHON names the interpreter with the frameworks; ours is .venv's where that works here.
gpu-day: OUT ?= build/gpu-day
gpu-day:
	@host=$(BIN)/python; $$host -c '' 2>/dev/null || host='$(PYTHON)'; \
	  exec $$host -m tests.gpu --python '$(PYTHON)' --out '$(OUT)' \
	    $(if $(STEPS),--only '$(STEPS)') $(if $(WHEELS),--wheels '$(WHEELS)') $(if $(MINUTES),--minutes '$(MINUTES)')

# The pages of docs/gallery/ and their picture, measured anew here: an hour and a quarter, and a Chromium.
gallery: setup
	@$(BIN)/python -m tests.gallery $(ONLY) $(if $(PAGES_ONLY),--pages-only)

# Pictures of a page of each kind, at three widths, light, dark and printed, to be looked at; and what an
# accessibility checker finds. Two minutes, and a Chromium.
screenshots: setup
	@$(BIN)/python -m tests.browser.screenshots --to build/screenshots

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
