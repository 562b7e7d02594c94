# Needs only Python 3.11+ (as PYTHON), make and a package index. `make help` lists what there is to do.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
READY := $(VENV)/.ready
INSTALL := $(VENV)/bin/uv pip install --compile-bytecode --python $(RUN)
# Editable, by the locked setuptools: no index is asked, and what lies beside the code (grids, PLE's pictures) stays there.
INSTALL_FOLDER := $(INSTALL) --quiet --no-deps --no-build-isolation --editable
# The lock of an extra has only what it adds: what that needs besides is in requirements.lock, and installed.
OF_EXTRA := --require-hashes --no-deps
# Where there is no terminal, installers are silent for minutes: a line now and then, as long as the shell of a recipe lives.
AWAKE := while sleep 8 >/dev/null 2>&1 && kill -0 $$$$ 2>/dev/null; do echo "still installing"; done & trap "kill $$!" EXIT;
# Sweeps and tests start hundreds of processes: none should have to compile our files anew.
export PYTHONDONTWRITEBYTECODE =
PLE ?= https://github.com/ntasfi/PyGame-Learning-Environment
# Its code runs here: nobody may change it unnoticed.
PLE_COMMIT ?= 3dbe79dc0c35559bb441b9359948aabf9bb3d331

.DEFAULT_GOAL := help
.PHONY: help setup setup-ple setup-ray setup-atari setup-lab demo test test-ray test-atari check bench ui pages notebooks lab clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | awk -F'\t' '{printf "  make %-11s %s\n", $$1, $$2}'

setup: $(READY)  ## an environment of its own in .venv, from the lock, with the project in it

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed: make setup PYTHON=python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	awk '/^uv==/,!/\\$$/' requirements.lock >$(VENV)/uv.txt
	$(VENV)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r $(VENV)/uv.txt
	@echo "Installing what requirements.lock names" && $(AWAKE) $(INSTALL) --require-hashes -r requirements.lock
	$(INSTALL_FOLDER) .
	-@$(RUN) -m a3c.warm
	@touch $@

setup-ple: setup  ## the real PLE as well, from git at PLE_COMMIT, or from a checkout: PLE=/path/to/it
	@folder="$(PLE)"; if [ ! -d "$$folder" ]; then folder=$(VENV)/ple; rm -rf $$folder.new && \
	  git init --quiet $$folder.new && git -C $$folder.new fetch --quiet --depth 1 "$(PLE)" "$(PLE_COMMIT)" && \
	  git -C $$folder.new checkout --quiet FETCH_HEAD && rm -rf $$folder && mv $$folder.new $$folder || exit 1; fi; \
	  $(INSTALL_FOLDER) "$$folder"
	@$(RUN) -c 'from a3c_core.games.ple import PleEnv; PleEnv().reset(); print("The real PLE is ready: ple/FlappyBird-v0")'

setup-ray: $(VENV)/.ready-ray  ## the same with Ray, for more than one machine

$(VENV)/.ready-ray: requirements-ray.lock $(READY)
	$(INSTALL) $(OF_EXTRA) -r requirements-ray.lock
	@touch $@

setup-atari: $(VENV)/.ready-atari  ## the same with Atari's games: ALE/Pong-v5 and others

$(VENV)/.ready-atari: requirements-atari.lock $(READY)
	$(INSTALL) $(OF_EXTRA) -r requirements-atari.lock
	@touch $@

setup-lab: $(VENV)/.ready-lab  ## the same with JupyterLab

$(VENV)/.ready-lab: requirements-lab.lock $(READY)
	$(INSTALL) $(OF_EXTRA) -r requirements-lab.lock
	@touch $@

demo: setup  ## a small real sweep in virtual time, its picture and its report
	$(RUN) run_sweep.py --grid quick
	@echo && echo "Open results/quick/index.html for the report, or run 'make ui' for MLflow."

# What is large goes back to the system when it is freed, and comes from there as zeros, or glibc writes those itself.
test: export MALLOC_MMAP_THRESHOLD_ = 4194304
# Three processes share the cores: a second thread of NumPy's would wait in a loop on one that another needs.
test: export OPENBLAS_NUM_THREADS = 1
test: setup  ## all tests (TESTS='-m "not slow"' for the quick ones)
	$(RUN) -m pytest -n 3 --dist loadfile --no-loadscope-reorder $(TESTS)

test-ray: setup-ray  ## the tests that need Ray: a cluster of two nodes on this machine
	$(RUN) -m pytest tests/test_ray.py

test-atari: setup-atari  ## the tests that need Atari's games
	$(RUN) -m pytest tests/test_atari.py

check: setup  ## ruff and mypy
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

bench: setup  ## speed of the game, the engines and the runtimes
	$(RUN) -m a3c.benchmark env
	$(RUN) -m a3c.benchmark engine

ui: setup  ## MLflow's user interface on 127.0.0.1:5000
	MLFLOW_DISABLE_TELEMETRY=true MLFLOW_SERVER_ENABLE_JOB_EXECUTION=false $(VENV)/bin/mlflow server --backend-store-uri sqlite:///mlflow.db --host 127.0.0.1 --port 5000

pages: setup  ## the pages of all studies and their index, results/index.html; changes no file that git tracks
	$(RUN) -m analysis.all_pages

notebooks: setup  ## run the notebooks in analysis/ on results/report
	$(RUN) -m analysis.notebooks

lab: setup-lab  ## the notebooks in JupyterLab, on 127.0.0.1:8888; begin with analysis/04_your_own_study.ipynb
	$(VENV)/bin/jupyter lab --ip 127.0.0.1 --port 8888 --notebook-dir .

clean:  ## remove the environment and all caches, but no results
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
