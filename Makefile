# Every target sets up what it needs; `make help` lists them.
PYTHON ?= python3
STORE ?= sqlite
PROCESSES ?= 3
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help setup demo test chaos check format bench bench-peers

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' | column -t -s '|'

setup: $(VENV)/.ready ## prepare .venv with the package and what its tests need

# What the installation compiles; where it cannot, it says so and goes on.
NATIVE := supervisor/build_native.py supervisor/runwick_supervisor/native/runwick_native.c

$(VENV)/.ready: pyproject.toml $(NATIVE)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Runwick needs Python 3.11 or newer; set PYTHON=python3.11 (or newer)")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

demo: setup ## run the main job: every core busy, every cost shown (STORE=postgres, STORE=redis: on a server of its own)
	$(BIN)/python -m examples.stdlib.demo --store $(STORE)

# Processes that tests start read the sources compiled, also where Python may not keep what it compiles.
test: setup ## run the tests, three at once (PROCESSES=… as many)
	$(BIN)/python -m compileall -q --invalidation-mode checked-hash runwick supervisor scripts examples tests
	$(BIN)/python -m pytest --numprocesses $(PROCESSES) --dist worksteal

chaos: setup ## kill and pause executors, supervisors and servers under load, and check every history (SEED=… repeats one)
	$(BIN)/python -m tests.chaos $(if $(SEED),--seed $(SEED))

check: setup ## format, lint, types, import layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup ## rewrite the files in the project's format
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

bench: setup ## measure throughput, latency, claims, rates and the share of the cores in handlers (STORE=postgres, STORE=redis as well)
	$(BIN)/python -m scripts.bench all --store $(STORE)

bench-peers: setup ## measure Runwick beside other job systems, in turn, into docs/benchmarks (FULL=1: all there is)
	$(BIN)/python -m scripts.peers $(if $(FULL),--full)
