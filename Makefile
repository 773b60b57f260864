# `make demo` and `make test` do all set-up themselves. They need Python (with venv and pip) and Java, nothing else.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.headwater-setup
ARCHIVE := $(VENV)/.headwater-archive
PYTEST := $(BIN)/python -m pytest
# One process more than there are cores, since some tests wait: for servers, for time limits. A file's tests stay together:
# they share fixtures and results.
CORES  := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
FAST   := -m "not spark and not golden and not recovery" --dist loadfile -o tmp_path_retention_policy=failed \
	  --numprocesses $(shell expr $(CORES) + 1) --maxprocesses 9
# They write and sync thousands of small files. In memory that takes no time, if there is a gigabyte of it.
MEMORY := $(shell df -kP /dev/shm 2>/dev/null | awk 'NR == 2 && $$4 > 1000000 { print "/dev/shm" }')
IN_RAM := $(if $(MEMORY),TMPDIR=$(MEMORY))
# What kills processes waits a lot: for Spark to start again, for delays and time limits. Two at a time use both cores.
# The tests on Spark share one Spark, one after the other: in pairs, a slot of theirs outlived its job twice.
IN_PAIRS := --numprocesses 2 --dist loadfile

.DEFAULT_GOAL := help
.PHONY: help setup java demo example-etl test test-fast test-long chaos check bench parity parity-sql parity-rest parity-functions parity-matches parity-streams fmt docs lock clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## Make .venv with everything that requirements.lock pins (the other targets call it)

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	  || { echo "headwater needs Python 3.11 or newer: '$(PYTHON)' is $$($(PYTHON) --version 2>&1). Install one and run make PYTHON=/path/to/python3 ..." >&2; exit 1; }
	@test -x $(BIN)/python -a -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@$(BIN)/python -m compileall -q headwater  # slots and workers start faster, also where Python may not write bytecode
	@touch $@

java:
	@scripts/check-java.sh

# Halves the work of starting Spark, which the tests do some fifty times. Without it they pass as well.
$(ARCHIVE): $(STAMP)
	@$(BIN)/python -m headwater.runtime.spark.write_class_archive || true
	@touch $@

demo: java setup ## Two million card payments, one slot killed half way, nothing lost (about a minute); LIVE=1 keeps running
	$(BIN)/python -m headwater.demo $(if $(LIVE),--live)

example-etl: java setup ## Changes of a PostgreSQL table, enriched, to a lake and to Kafka; starts its own servers (half a minute)
	$(BIN)/python examples/streaming_etl.py

test: java setup $(ARCHIVE) ## All tests: the fast ones first, then those on Spark, golden jobs, recovery
	$(IN_RAM) $(PYTEST) $(FAST)
	$(PYTEST) -m spark tests/spark tests/parity
	$(PYTEST) $(IN_PAIRS) tests/golden tests/recovery

test-fast: setup ## Only the tests that need no Spark (seconds)
	$(IN_RAM) $(PYTEST) $(FAST)

test-long: java setup ## More of some tests: 20,000 patterns against brute force; 100,000 malformed requests; 20 dead servers; 200 readers of state while slots die; 5,000 random queries against DuckDB (an hour)
	CEP_CASES=20000 $(IN_RAM) $(PYTEST) $(FAST) tests/unit/operators/cep/test_matcher_oracle.py
	MALFORMED_REQUESTS=100000 $(IN_RAM) $(PYTEST) tests/unit/server/test_malformed_requests.py
	SERVER_ROUNDS=20 TAKEOVER_SECONDS=10 $(IN_RAM) $(PYTEST) tests/unit/server/jobs/test_session.py -k "killed_finds or takes_over or at_once"
	STATE_LOAD=full $(PYTEST) -s tests/recovery/test_state_queries.py
	SQL_QUERIES=5000 $(IN_RAM) $(PYTEST) -s tests/unit/table/stream/test_random_queries.py

chaos: java setup $(ARCHIVE) ## 3,000 seeded histories of the engine, then real processes: 100 kills, 50 stops, 10 executors, every step of a cluster (an hour)
	$(BIN)/python scripts/chaos.py
	CHAOS=full $(IN_RAM) $(PYTEST) -s --numprocesses logical tests/chaos/test_damaged_directories.py
	CHAOS=full $(PYTEST) -s tests/recovery/test_chaos.py
	CHAOS=full $(PYTEST) -s tests/recovery/test_every_step.py -k cluster
	CHAOS=full $(PYTEST) -s tests/recovery/test_kafka.py
	CHAOS=full $(PYTEST) -s tests/recovery/test_jdbc.py tests/recovery/test_postgres_cdc.py
	CHAOS=full $(PYTEST) -s tests/recovery/test_lakes.py tests/recovery/test_brokers.py tests/recovery/test_sinks_on_spark.py tests/recovery/test_whole_program.py

check: setup ## Lint, format, types, layers: what CI runs first
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy --strict -p headwater
	$(PYTEST) -q tests/test_layers.py

bench: java setup ## Measure against PyFlink, Spark, bytewax and a bare loop; writes benchmarks/RESULTS.md
	$(BIN)/python -m benchmarks

parity: java setup ## Record anew what PyFlink does (names, keys, outputs of programs); writes docs/pyflink.md
	$(BIN)/python scripts/parity_record.py

parity-sql: java setup ## Record anew what Flink SQL gives in batch mode (for the test of headwater's)
	$(BIN)/python scripts/sql_record.py

parity-rest: java setup ## Record anew what Flink's REST answers (for the contract test of headwater's)
	$(BIN)/python scripts/record_flink_rest.py

parity-matches: java setup ## Record anew what Flink's MATCH_RECOGNIZE gives (for the test of headwater's)
	$(BIN)/python scripts/record_flink_matches.py

parity-streams: java setup ## Record anew the tables that queries on streams leave in Flink (for the test of headwater's)
	$(BIN)/python scripts/record_flink_streams.py

parity-functions: java setup ## Record anew what Flink's SQL functions give (for the tests of headwater's)
	$(BIN)/python scripts/record_flink_functions.py

fmt: setup ## Format the code and repair what ruff can repair
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: setup ## Write docs/configuration.md, docs/sql/functions.md and the pictures of docs/cep.md anew from the code
	$(BIN)/python scripts/generate_configuration_docs.py
	$(BIN)/python scripts/generate_function_docs.py
	$(BIN)/python scripts/generate_cep_pictures.py

lock: ## Pin the dependencies anew (needs uv)
	uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes --upgrade --quiet \
	  --no-emit-index-url --no-emit-find-links --no-header --no-annotate --output-file requirements.lock

clean: ## Remove the environment, caches and what jobs left in this directory
	rm -rf $(VENV) .artifacts .bench .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist *.egg-info \
	  metastore_db derby.log spark-warehouse artifacts
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
