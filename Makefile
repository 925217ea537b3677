# Everything runs in .venv; only Python >= 3.11 and make are needed beforehand.
# Another interpreter: make demo PYTHON=python3.12

SUITABLE = import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(or $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c '$(SUITABLE)' 2>/dev/null && echo $$p && break; done),python3)
VENV := .venv
BIN := $(VENV)/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo picture test lint format validate build clean

help:  ## Show this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

demo: $(VENV)/.run  ## Install, then co-design an accelerator for ResNet-18 and report
	$(BIN)/dse search resnet18_edge

picture: $(VENV)/.run  ## Draw the README's picture again (a search)
	$(BIN)/dse search resnet18_edge --out runs/picture
	cp runs/picture/plots/pareto.png docs/images/pareto.png

test: $(VENV)/.dev  ## Install what the tests need and run them
	$(BIN)/python -m pytest -n auto --dist loadfile

validate: $(VENV)/.dev  ## The long validation runs (minutes to hours)
	$(BIN)/python -m pytest -m slow

lint: $(VENV)/.dev  ## Style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev  ## Rewrite the sources in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

build: $(VENV)/.dev  ## Wheel and sdist in dist/
	$(BIN)/python -m build

clean:  ## Remove what make created (finished searches in runs/ stay)
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/bin/python:
	@$(PYTHON) -c '$(SUITABLE)' 2>/dev/null || { \
		echo "tilewright needs Python 3.11 or newer, and '$(PYTHON)' is not (or is missing)."; \
		echo "Name another one: make demo PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		echo "'$(PYTHON)' cannot create virtual environments; its venv package is missing."; \
		echo "On Debian and Ubuntu: sudo apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "Installing into $(VENV) (a few minutes the first time, mostly PyTorch) ..."
	$(PIP_INSTALL) -e '.[onnx,tflite,recompute,transformers]'
	@touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "Installing into $(VENV) (a few minutes the first time, mostly PyTorch) ..."
	$(PIP_INSTALL) -e '.[dev,onnx,tflite,recompute,transformers,cluster]'
	@touch $@
