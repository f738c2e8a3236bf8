# Everything a contributor runs. `make` alone lists the targets.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
ARGS ?=
CASES ?=

BIN := .venv/bin
# Tests are grouped and ordered by tests/harness/groups.py.
PYTEST := $(BIN)/pytest --numprocesses auto --dist loadgroup --no-loadscope-reorder
INSTALLED := .venv/installed
# The report ends in the platform and the interpreter's path, which differ for every reader.
WITHOUT_MACHINE := 's|; [^;]*; [^;]*</sub>$$|</sub>|'

# One thread per process: parallel tests on few cores are several times slower with torch's own threads on top.
export OMP_NUM_THREADS := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Where it is set, every process compiles what it imports, and pytest each test: a third of the time until tests start.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo check test nightly lint format golden readme images bench cases clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(INSTALLED) ## make .venv with everything in it (the other targets do so when it is missing)

# constraints.txt pins torch: nothing here may resolve another build of it.
$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[torch]' --group dev
	@touch $@

demo: $(INSTALLED) ## verify the example models on three targets and print the report
	$(BIN)/export-gate run --config examples/export-gate.yml $(ARGS)

check: lint ## lint, and run every test that is not slow, with fewer random examples: before each commit
	$(PYTEST) -m "not slow and not nightly" --hypothesis-profile check $(ARGS)

test: $(INSTALLED) ## run the suite in parallel (ARGS="-k nan" for a part of it)
	$(PYTEST) -m "not nightly" $(ARGS)

nightly: $(INSTALLED) ## run the suite with every model of both corpora and of the zoo
	$(PYTEST) $(ARGS)

lint: $(INSTALLED) ## ruff, mypy and the import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(INSTALLED) ## let ruff rewrite what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

golden: $(INSTALLED) ## rewrite the golden files; review the diff like code
	UPDATE_GOLDEN=1 $(PYTEST) $(ARGS)

readme: $(INSTALLED) ## put the demo's report into README.md
	$(BIN)/export-gate run --config examples/export-gate.yml --quiet --no-cache
	@$(BIN)/export-gate report examples/.export-gate/results.json --format comment | sed -E $(WITHOUT_MACHINE) > README.report
	@sed -e '/<!-- report:start -->/,/<!-- report:end -->/{//!d;}' -e '/<!-- report:start -->/r README.report' README.md > README.new
	@mv README.new README.md && rm README.report

images: $(INSTALLED) ## draw README's pictures from a real run (needs chromium)
	$(BIN)/python docs/images/make.py

bench: $(INSTALLED) ## time the gate beside hand-written scripts (ARGS="start ten" for a part of it)
	$(BIN)/python benchmarks/compare.py $(ARGS)

cases: $(INSTALLED) ## judge the corpus (CASES=folder for another, ARGS="stft lstm" for a part of it)
	$(BIN)/python tests/judge_corpus.py $(if $(CASES),--folder $(CASES)) $(ARGS)

clean: ## remove the environment, build results, caches and reports
	rm -rf .venv dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name .export-gate -prune -exec rm -rf {} +
	find . -name __pycache__ -prune -exec rm -rf {} +
