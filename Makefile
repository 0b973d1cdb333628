# Everything is set up in .venv, from PyPI alone; nothing else on the machine is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
D3 ?= 7.9.0
RUNS ?= 1000000
SEEDS ?= 50
WORKERS ?= 5
TRIAL_WORKERS ?= 2
# Tests wait more than they compute, so more of them run at once than there are cores. Those of one file stay
# together, and share its servers. One thread each, or the workers' linear algebra gets in one another's way.
# Bytecode is kept, whatever the environment says: workers, and the processes that tests start, are many.
PYTEST := PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help demo test test-stack test-kubernetes test-faults fuzz soak reliability check docs benchmarks screenshots recording vendor clean

help:            ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/demo.installed  ## see it work: a real classifier, a real broker, a real Redis (DEMO_SECONDS=90); label it yourself: LABELLER=me
	$(BIN)/credence demo $(if $(LABELLER),--labeller $(LABELLER))

test: $(VENV)/dev.installed   ## run all tests but tests/stack and tests/faults, the loop over real wire protocols included (WORKERS=5)
	$(PYTEST)

test-stack: $(VENV)/dev.installed  ## run what needs Apache Kafka (Java 17, Maven) and a Redis Cluster too (redis-server)
	$(BIN)/python tests/stack/kafka_distribution.py
	$(PYTEST) --broker apache tests/stack tests/loop tests/client
	$(PYTEST) --redis cluster tests/store tests/dead_letters/test_replay.py

test-kubernetes: $(VENV)/dev.installed  ## install, upgrade, drain and remove the chart on a real control plane (Go, root)
	bash .ci/kubernetes.sh

# Folders of trials that pass are removed: a long soak would fill the disk with them.
# Trials stand alone, each by its own record, and each keeps a core busy: with more of them than cores nothing ends
# sooner, and times of recovery would be times of waiting for a core.
TRIALS := mkdir -p build && OMP_NUM_THREADS=1 $(BIN)/pytest -n $(TRIAL_WORKERS) --dist load -rs -o tmp_path_retention_policy=failed --fault-records build/faults.jsonl

soak: $(VENV)/dev.installed  ## try compositions alone: as many seeds as SEEDS=500 says, or SEEDS=100..199
	$(TRIALS) --basetemp build/soak tests/faults/test_seeds.py --seeds $(SEEDS)

test-faults: $(VENV)/dev.installed  ## try every kind of fault, and SEEDS=50 compositions
	rm -f build/faults.jsonl
	$(TRIALS) --basetemp build/test-faults tests/faults --seeds $(SEEDS)

reliability: test-faults  ## the same, and tell in docs/reliability.md
	$(BIN)/python tests/faults/reliability.py build/faults.jsonl

check: $(VENV)/dev.installed  ## lint, format, types, import direction, generated files
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/mypy benchmarks
	$(BIN)/mypy docs/screenshots.py docs/house.py docs/recording.py
	$(BIN)/mypy -p deploy.grafana
	$(BIN)/mypy -p helm
	$(BIN)/mypy .ci/image_smoke.py .ci/image_site.py .ci/contained.py .ci/record_model_servers.py deploy/image/healthcheck.py
	$(BIN)/lint-imports
	$(BIN)/credence contract --check
	$(BIN)/credence describe configuration --check
	$(BIN)/credence describe metrics --check
	$(BIN)/credence describe rights --check
	$(BIN)/python -m deploy.grafana --check
	$(BIN)/python -m helm --check
	$(BIN)/python -m benchmarks.page --check
	$(BIN)/python -m docs.house --check

fuzz: $(VENV)/fuzz.installed  ## give every decoder a million bad inputs (RUNS=1000000 SEED=1), or some: DECODERS="avro arrow"
	PYTHONPATH=tests/fuzz:tests/consumers RUNS=$(RUNS) $(BIN)/python tests/fuzz/run.py $(DECODERS)

docs: $(VENV)/dev.installed   ## write the generated pages again
	$(BIN)/credence contract
	$(BIN)/credence describe configuration
	$(BIN)/credence describe metrics
	$(BIN)/credence describe rights
	$(BIN)/python -m deploy.grafana
	$(BIN)/python -m helm
	$(BIN)/python -m docs.house

benchmarks: $(VENV)/dev.installed  ## measure replays, estimates, scrapes, curves, flushes, label efficiency (minutes); the others: python -m benchmarks.page --run
	$(BIN)/python -m benchmarks.replay_speed
	$(BIN)/python -m benchmarks.beliefs_speed
	$(BIN)/python -m benchmarks.scrape
	$(BIN)/python -m benchmarks.curves
	$(BIN)/python -m benchmarks.flushes
	$(BIN)/python -m benchmarks.label_efficiency
	$(BIN)/python -m benchmarks.sharing
	$(BIN)/python -m benchmarks.alarms
	$(BIN)/python -m benchmarks.aimed
	$(BIN)/python -m benchmarks.watched_evidence
	$(BIN)/python -m benchmarks.pooling
	$(BIN)/python -m benchmarks.networks
	$(BIN)/python -m benchmarks.extremes
	$(BIN)/python -m benchmarks.annotators --runs 20
	$(BIN)/python -m benchmarks.challengers

screenshots: $(VENV)/dev.installed  ## play the demo, and picture its status page in docs/images
	$(BIN)/python -m docs.screenshots

recording: $(VENV)/dev.installed  ## play the demo, and record it as an animated picture in docs/images
	$(BIN)/python -m docs.recording

vendor:          ## fetch the status page's plotting library again, with npm (D3=7.9.0)
	folder=$$(mktemp -d) && cd $$folder && npm pack --silent d3@$(D3) && tar xzf d3-$(D3).tgz && \
	  cp package/LICENSE package/dist/d3.min.js $(CURDIR)/service/serving/web/static/vendor/ && rm -r $$folder

clean:           ## remove the virtual environment and all caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Credence needs Python 3.11 or newer; name one: make PYTHON=python3.12 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/%.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@
