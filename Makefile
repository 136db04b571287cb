# Lectern: `make run` and `make test` are all a fresh machine needs (Python 3.11, make and a package index).

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
PORT ?= 8420
BOOK ?= examples/physical-ai-robotics
QUESTIONS ?= examples/golden/physical-ai-robotics/queries.jsonl
BENCH ?= .bench
WORKERS ?= 3

.PHONY: hosts help setup dev run test check crash fuzz soak bench docs pictures lock clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

setup: $(VENV)/.run-ready  ## build .venv with .venv/bin/lectern, without extras
dev: $(VENV)/.dev-ready  ## the same, with every extra and what tests and checks need

run: setup  ## ingest the sample book (BOOK=…) and serve page and API (PORT=…)
	$(BIN)/lectern ingest "$(BOOK)"
	$(BIN)/lectern serve --port $(PORT)

test: check  ## checks and tests
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)

check: dev  ## format, lint, types, import rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

COMPILE := uv pip compile --universal --generate-hashes --custom-compile-command "make lock" \
	--python-version 3.11 pyproject.toml

# uv writes no address of an index into a lock unless it is told to; tests/unit checks the locks
lock:  ## renew the lock files (needs uv): the core, what several servers need, and everything that tests need
	$(COMPILE) --group run -o requirements.lock
	$(COMPILE) --all-extras --group dev -c requirements.lock -o requirements-dev.lock
	$(COMPILE) --group run --extra server --extra traces -c requirements-dev.lock -o requirements-server.lock

crash: dev  ## 1,000 kills and 200 power cuts of ingestions, 2,000 random histories, 200 kills of conversations, 1,000 vanished clients (about an hour)
	$(BIN)/python -m pytest tests/crash tests/properties/test_histories.py tests/ingestion tests/api/test_streams.py \
		--kills 1000 --histories 2000 --reads 10000 --turns 1000 --conversation-kills 200 --disconnects 1000

fuzz: dev  ## 20,000 requests by Schemathesis over the whole API, 2,000 hostile drafts of a model, hostile files, new examples
	$(BIN)/python -m pytest tests/api/test_fuzz.py tests/answering/test_hostile_drafts.py --fuzz 20000 --drafts 1000
	$(BIN)/python -m pytest tests/unit tests/properties --hostile-share 1 --hypothesis-profile search

MINUTES ?= 30
soak: dev  ## one server under mixed load for half an hour (MINUTES=…): memory, descriptors, threads and database stay as they are
	$(BIN)/python -m pytest -s tests/soak --soak-minutes $(MINUTES)

bench: dev  ## ingest and search beside LlamaIndex, txtai and Chroma (BOOK=…, QUESTIONS=…), the index as it grows, the API under load
	@mkdir -p $(BENCH)
	$(BIN)/python benchmarks/scale.py --json $(BENCH)/scale.json --chart docs/benchmarks/scale.svg
	$(BIN)/python benchmarks/ingest.py "$(BOOK)" --venvs $(BENCH) --queries "$(QUESTIONS)" --json $(BENCH)/ingest.json
	LECTERN_HOME=$(BENCH)/home $(BIN)/lectern ingest "$(BOOK)"
	$(BIN)/python benchmarks/api.py $(BENCH)/home "$(QUESTIONS)" --json $(BENCH)/api.json --chart docs/benchmarks/api.svg

docs: dev  ## write the pages that are made from the code
	$(BIN)/python scripts/write_docs.py

pictures: dev  ## take the pictures of the page in docs/img (needs a chromium)
	$(BIN)/python scripts/take_pictures.py

hosts:  ## install Docusaurus below .cache, so that the widget is tested on it too (needs npm, two minutes)
	npm install --no-audit --no-fund --loglevel=error --prefix .cache/hosts @docusaurus/core@3.10.2 \
		@docusaurus/plugin-content-docs@3.10.2 @docusaurus/theme-classic@3.10.2 react@19 react-dom@19

clean:  ## remove .venv and the local index
	rm -rf $(VENV) .lectern

$(VENV)/.run-ready: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Lectern needs Python 3.11 or newer; say which with: make PYTHON=/path/to/python3.11"; exit 2; }
	@echo "Building $(VENV) (about a minute on a fresh machine)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --require-hashes -r requirements.lock
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev-ready: requirements-dev.lock $(VENV)/.run-ready
	@$(PIP) install --require-hashes --no-deps -r requirements-dev.lock
	@touch $@
