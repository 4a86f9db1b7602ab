# Every target makes its own .venv on first use; `make` alone lists them. All paths are relative, so that
# the repository may live in a folder with spaces in its name.
PYTHON ?= python3
# Each worker has a Spark session of its own, and waits for it half of the time: three keep two cores busy.
WORKERS ?= 3
PYTEST_ARGS ?=
BENCH_ARGS ?=
SCALE ?= small
STORAGE ?= local
EXPERIMENTS ?=
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help demo test check format bench experiments site wheel clean java

help: ## list the targets
	@echo "usage: make TARGET [PYTHON=python3.11]"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' Makefile | expand -t 14

demo: java $(STAMP) ## index a small dataset, query it, show what was skipped
	@$(BIN)/skipstone demo

test: java $(STAMP) ## run the tests; LONG=1 adds the long ones; PYTEST_ARGS="-k minmax -x"
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(if $(filter-out 0,$(LONG)),--long) $(PYTEST_ARGS)

check: $(STAMP) ## ruff (rules and format), mypy strict, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(STAMP) ## let ruff format and fix what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: java $(STAMP) ## run the benchmarks; BENCH_ARGS go to them
	@$(BIN)/python -m benchmarks $(BENCH_ARGS)

experiments: java $(STAMP) ## repeat the paper's experiments; SCALE=medium|full STORAGE=s3 EXPERIMENTS="fig8_breakdown"
	@$(BIN)/python -m benchmarks.experiments $(EXPERIMENTS) --scale $(SCALE) --storage $(STORAGE)

site: $(STAMP) ## build the documentation as a searchable site into build/docs/site; a broken link fails
	@$(BIN)/python scripts/site/build.py

wheel: java $(STAMP) ## build sdist and wheel into dist/, with the compiled bridge inside
	@rm -rf dist
	@SKIPSTONE_WHEEL_JAR=require $(BIN)/python -m build --no-isolation --outdir dist .

clean: ## remove what was built, cached or left behind by Spark (and .venv with ALL=1)
	@rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache spark-warehouse metastore_db derby.log
	@find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
	@$(if $(filter-out 0,$(ALL)),rm -rf $(VENV))

java:
	@sh scripts/check-java

$(STAMP): pyproject.toml
	@PYTHON="$(PYTHON)" sh scripts/setup-venv $@
