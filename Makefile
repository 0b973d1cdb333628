# Everything is set up in .venv, from PyPI alone; nothing else on the machine is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
D3 ?= 7.9.0

.DEFAULT_GOAL := help
.PHONY: help demo test test-stack check docs benchmarks screenshots vendor clean

help:            ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/demo.installed  ## see it work: a real classifier, a real broker, a real Redis (DEMO_SECONDS=90)
	$(BIN)/credence demo

test: $(VENV)/dev.installed   ## run all tests, the loop over real wire protocols included
	$(BIN)/pytest

test-stack: $(VENV)/dev.installed  ## run what needs Apache Kafka (Java 17, Maven) and a Redis Cluster too (redis-server)
	$(BIN)/pytest --broker apache tests/stack tests/loop
	$(BIN)/pytest --redis cluster tests/store

check: $(VENV)/dev.installed  ## lint, format, types, import direction, generated files
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy benchmarks
	$(BIN)/mypy docs/screenshots.py
	$(BIN)/mypy -p deploy.grafana
	$(BIN)/lint-imports
	$(BIN)/credence contract --check
	$(BIN)/credence reference configuration --check
	$(BIN)/credence reference metrics --check
	$(BIN)/python -m deploy.grafana --check

docs: $(VENV)/dev.installed   ## write the generated pages anew
	$(BIN)/credence contract
	$(BIN)/credence reference configuration
	$(BIN)/credence reference metrics
	$(BIN)/python -m deploy.grafana

benchmarks: $(VENV)/dev.installed  ## measure speed, scrapes, and label efficiency on digits (minutes)
	$(BIN)/python -m benchmarks.replay_speed
	$(BIN)/python -m benchmarks.beliefs_speed
	$(BIN)/python -m benchmarks.scrape
	$(BIN)/python -m benchmarks.label_efficiency

screenshots: $(VENV)/dev.installed  ## play the demo, and picture its status page in docs/images
	$(BIN)/python -m docs.screenshots

vendor:          ## fetch the status page's plotting library anew, with npm (D3=7.9.0)
	folder=$$(mktemp -d) && cd $$folder && npm pack --silent d3@$(D3) && tar xzf d3-$(D3).tgz && \
	  cp package/LICENSE package/dist/d3.min.js $(CURDIR)/service/web/static/vendor/ && rm -r $$folder

clean:           ## remove the virtual environment and all caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Credence needs Python 3.11 or newer; name one: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/%.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@
