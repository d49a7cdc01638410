# Everything a developer or CI runs. `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help demo test bench-load bench-jobs check lint audit coverage format clean

help: ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Headway needs Python 3.11 or newer; run: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(STAMP) ## Sweep a simulated inference server and write an HTML report
	$(BIN)/headway demo

test: $(STAMP) ## Run the whole test suite
	$(BIN)/python -m pytest -n 4 --dist worksteal -m 'not serial' -q
	$(BIN)/python -m pytest -m serial -q

lint: $(STAMP) ## Linters, types and import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench-load: $(STAMP) ## Measure the load engine against its budgets, beside wrk
	$(BIN)/python benchmarks/load/budgets.py

bench-jobs: $(STAMP) ## Measure the job engine against its budgets, beside RQ and Celery
	$(BIN)/python benchmarks/jobs/budgets.py

audit: $(STAMP) ## Known advisories for what Headway installs; needs the network
	$(BIN)/python .ci/audit

coverage: $(STAMP) ## Branches of the load engine that tests take; fails at 90 % or less
	$(BIN)/python .ci/coverage

check: lint audit test ## All that CI checks, and the audit

format: $(STAMP) ## Format the code
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean: ## Remove the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis
