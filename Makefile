# `make demo` and `make test` are all that a fresh clone needs; `make help` lists the rest.
#
#   PYTHON=...   the Python to make the environment with (default: the newest 3.11 or later)
#   VENV=...     the environment (default: .venv); one for each Python, if you want several
#   ARGS=...     passed on: make test ARGS="tests/core -k barrier"

VENV   ?= .venv
PYTHON ?=
JOBS   ?= 4
ARGS   ?=

BIN     := $(VENV)/bin
PIP     := $(BIN)/python -m pip install --quiet --disable-pip-version-check
RUNS    := $(VENV)/.overnight-runs
DEVELOP := $(VENV)/.overnight-develops

.DEFAULT_GOAL := help
.PHONY: same-python help demo test check lint types layers bench zipapp clean

help:
	@echo "make demo     run a parameter sweep of 100 tasks on this machine (about ten seconds)"
	@echo "make test     every test this machine can run; says which real parts were missing"
	@echo "make check    lint (ruff), types (mypy), layers (import-linter)"
	@echo "make bench    us and the peers, interleaved (takes long)"
	@echo "make zipapp   the whole program as one file: dist/overnight.pyz"
	@echo "make clean    remove what these made"

demo: $(RUNS)
	@PATH="$(abspath $(BIN)):$$PATH" demo/run

test: $(DEVELOP)
	$(BIN)/python -m pytest -n $(JOBS) $(ARGS)

check: lint types layers

lint: $(DEVELOP)
	$(BIN)/ruff check

types: $(DEVELOP)
	$(BIN)/mypy

layers: $(DEVELOP)
	$(BIN)/lint-imports --no-logo

bench: $(DEVELOP)
	$(BIN)/python bench/run.py $(ARGS)

zipapp: $(DEVELOP)
	$(BIN)/python tools/build_zipapp.py dist/overnight.pyz

$(BIN)/python:
	@python=$$(tools/find-python $(PYTHON)) || exit 1; \
	echo "Making $(VENV) with $$python"; \
	"$$python" -m venv "$(VENV)"

same-python: | $(BIN)/python
	@tools/same-python $(BIN)/python $(PYTHON)

$(RUNS): pyproject.toml | same-python
	@echo "Installing overnight into $(VENV)"
	@$(PIP) --editable .
	@touch $@

$(DEVELOP): pyproject.toml | same-python
	@echo "Installing overnight and what its tests and checks need into $(VENV)"
	@$(PIP) --editable ".[dev]"
	@touch $@ $(RUNS)

clean:
	rm -rf $(VENV) build dist demo-run .mypy_cache .ruff_cache .pytest_cache .hypothesis \
	    .import_linter_cache
