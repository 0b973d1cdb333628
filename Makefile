# Everything is set up in .venv, from PyPI alone; nothing else on the machine is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help demo test check docs benchmarks clean

help:            ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/demo.installed  ## see it work: a real classifier, a real broker, a real Redis (DEMO_SECONDS=90)
	$(BIN)/credence demo

test: $(VENV)/dev.installed   ## run all tests, the loop over real wire protocols included
	$(BIN)/pytest

check: $(VENV)/dev.installed  ## lint, format, types, import direction, generated files
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy benchmarks
	$(BIN)/lint-imports
	$(BIN)/credence contract --check
	$(BIN)/credence reference configuration --check
	$(BIN)/credence reference metrics --check

docs: $(VENV)/dev.installed   ## write the generated pages anew
	$(BIN)/credence contract
	$(BIN)/credence reference configuration
	$(BIN)/credence reference metrics

benchmarks: $(VENV)/dev.installed  ## measure speed, scrapes, and label efficiency on digits (minutes)
	$(BIN)/python -m benchmarks.replay_speed
	$(BIN)/python -m benchmarks.beliefs_speed
	$(BIN)/python -m benchmarks.scrape
	$(BIN)/python -m benchmarks.label_efficiency

clean:           ## remove the virtual environment and all caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Credence needs Python 3.11 or newer; name one: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/%.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@
