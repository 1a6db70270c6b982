# `make check` is exactly what CI runs.
PYTHON ?= python3
VENV ?= .venv
JOBS ?= 2
DEMO ?= demo-run

BIN := $(VENV)/bin
READY := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help install install-locked demo test lint docs figures screenshots check faults lock audit release package bench bench-quality bench-collection bench-scale clean

help: ## List the targets.
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 13

install: $(READY) ## Create .venv and install the package into it.

# The stamp is older than these files when the dependencies may have changed.
$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $(READY)

demo: $(READY) ## Train on some characters, cluster others, and show the result (3 to 5 minutes).
	$(BIN)/hilander demo -o $(DEMO)

test: $(READY) ## Run the tests.
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS)

lint: $(READY) ## Check the code without running it: ruff, mypy and the layers of imports.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(READY) ## Build the documentation into build/site; a broken link is an error.
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

figures: $(READY) ## Draw the diagrams and option tables of the documentation from the code.
	$(BIN)/python docs/figures/layers.py
	$(BIN)/python docs/figures/path_of_a_row.py
	$(BIN)/python docs/figures/options.py
	$(BIN)/python docs/figures/edge_features.py
	$(BIN)/python docs/figures/constants.py
	$(BIN)/python docs/figures/broken_files.py

screenshots: $(READY) ## Take the pictures of the explorer anew, light, dark and on a phone (needs Chromium).
	HILANDER_SCREENSHOTS=1 $(BIN)/python -m pytest -q tests/explorer/page/test_screenshots.py

check: lint docs test ## Everything CI runs.

faults: $(READY) ## Try faults at every step of every command, and render the table (an hour).
	$(BIN)/python -m benchmarks.faults run
	$(BIN)/python -m benchmarks.faults render

install-locked: ## As install, with exactly the versions and digests of requirements.lock.
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt torch
	$(BIN)/python -m pip install --quiet --no-deps --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps -e .
	touch $(READY)

lock: $(READY) ## Write requirements.lock: versions and digests of all that CI installs.
	$(BIN)/python tools/lock.py

audit: $(READY) ## Look the locked packages up among known vulnerabilities (needs the network).
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[release]'
	$(BIN)/pip-audit --disable-pip --require-hashes -r requirements.lock

release: $(READY) ## Build wheel, sdist and the list of components (SBOM) into dist.
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[release]'
	rm -rf dist build/release
	$(BIN)/python -m build --outdir dist .
	$(PYTHON) -m venv build/release
	build/release/bin/python -m pip install --quiet -c constraints.txt dist/*.whl
	$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --mc-type library \
	  --output-reproducible --output-format JSON --output-file dist/sbom.cdx.json \
	  build/release/bin/python

package: ## Build sdist and wheel, and try the wheel in an empty environment without a compiler.
	tools/try_package $(PYTHON)

bench: $(READY) ## Measure, append rows to benchmarks/results/, and render the tables (hours).
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev,rivals,infomap]'
	$(BIN)/python -m benchmarks.faithful run
	$(BIN)/python -m benchmarks.faithful render
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.suite run --missing
	$(BIN)/python -m benchmarks.pseudo_labels run
	$(BIN)/python -m benchmarks.calibration run
	$(BIN)/python -m benchmarks.calibration render
	$(BIN)/python -m benchmarks.pretrained score
	$(BIN)/python -m benchmarks.pretrained render
	$(BIN)/python -m benchmarks.quality ablation
	$(BIN)/python -m benchmarks.quality identities
	$(BIN)/python -m benchmarks.quality render
	$(BIN)/python -m benchmarks.figures
	$(BIN)/python -m benchmarks.render

bench-quality: $(READY) ## Measure quality on all kinds of sets, and render the page (about two hours).
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev,rivals,infomap]'
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.wide run
	$(BIN)/python -m benchmarks.wide render

bench-collection: $(READY) ## Measure collections (ten drops, stable ids, cost of an update, kills, re-runs) and constraints.
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.collection run
	$(BIN)/python -m benchmarks.survival run
	$(BIN)/python -m benchmarks.collection render
	$(BIN)/python -m benchmarks.constraints run
	$(BIN)/python -m benchmarks.constraints render

bench-scale: $(READY) ## Measure how time and memory grow, up to 5.2 M points (hours).
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev,rivals]'
	$(BIN)/python -m benchmarks.scale run
	$(BIN)/python -m benchmarks.scale train
	$(BIN)/python -m benchmarks.scale huge
	$(BIN)/python -m benchmarks.scale render

clean: ## Remove what make and the tools wrote; .venv stays.
	rm -rf $(DEMO) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -not -path './$(VENV)/*' -prune -exec rm -rf {} +
