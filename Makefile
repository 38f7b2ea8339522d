# Needs make, git and Python 3.11 or newer; everything else is installed into .venv.
PYTHON ?= python3
PORT ?= 8000
WORKERS ?= logical
ARGS ?=

BIN := .venv/bin
UV := $(BIN)/uv
MADE := .venv/.made-with-$(subst /,_,$(PYTHON))
INSTALLED := .venv/.installed
PINS := requirements/uv.txt requirements/base.txt requirements/test.txt requirements/lint.txt
SLICE := $(addprefix tests/idempotency/test_,$(addsuffix .py,claims conflicts engine leased statements))
CELLS ?= 3.12-6.0 3.13-6.1 3.11-lowest
COMPILE := $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-annotate --custom-compile-command "make requirements"

export UV_PYTHON_DOWNLOADS := never

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint matrix campaign requirements clean

help: ## Show what can be made
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo "PYTHON=$(PYTHON) makes .venv; PORT=$(PORT) is where the demo serves; ARGS go to pytest."

setup: $(INSTALLED) ## Make .venv and install what is pinned in requirements/

demo: $(INSTALLED) ## Walk through the scenarios, then serve the shop on PORT
	@exec $(BIN)/python manage.py demo --port $(PORT)

test: $(INSTALLED) ## Run all tests on private servers
	@$(BIN)/pytest -n $(WORKERS) $(ARGS)

lint: $(INSTALLED) ## Check style, types, layers, migrations and settings
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	DATABASE_URL=sqlite://:memory: $(BIN)/python manage.py makemigrations --check --dry-run
	DATABASE_URL=sqlite://:memory: $(BIN)/python manage.py check --fail-level WARNING

# The corners that `make test` leaves: it runs on Python 3.11 and Django 5.2.
matrix: $(CELLS:%=matrix-%) ## Run the library's tests on other Pythons and Djangos: CELLS="3.12-5.2 3.12-6.1"

matrix-%: .venvs/%/.installed
	@echo "== Python $(firstword $(subst -, ,$*)), Django $(lastword $(subst -, ,$*)), SQLite"
	@MATRIX_DATABASE=sqlite .venvs/$*/bin/pytest -n $(WORKERS) -q tests/idempotency
	@echo "== Python $(firstword $(subst -, ,$*)), Django $(lastword $(subst -, ,$*)), PostgreSQL"
	@MATRIX_DATABASE=postgresql .venvs/$*/bin/pytest -n $(WORKERS) -q -m postgresql $(SLICE)

campaign: $(INSTALLED) ## Run the long tests with all their rounds
	@CAMPAIGN=1 $(BIN)/pytest -m campaign --timeout 3600 --durations 0 $(ARGS)

requirements: $(INSTALLED) ## Compile requirements/*.in to exact versions with hashes
	cd requirements && for name in uv base; do ../$(COMPILE) --upgrade $$name.in -o $$name.txt || exit; done
	cd requirements && ../$(COMPILE) --upgrade -c base.txt test.in -o test.txt
	cd requirements && ../$(COMPILE) --upgrade lint.in -o lint.txt
	cd requirements && for name in django-5.2 django-6.0 django-6.1; do \
		../$(COMPILE) --upgrade --no-deps $$name.in -o $$name.txt || exit; done
	$(COMPILE) --upgrade --resolution lowest-direct --extra postgres \
		pyproject.toml requirements/lowest.in -o requirements/lowest.txt

clean: ## Remove the environments, caches and the demo's database
	rm -rf .venv .venvs var build dist staticfiles .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(MADE):
	@command -v "$(PYTHON)" > /dev/null || { echo "No $(PYTHON) here: install Python 3.11 or newer, or name one: make PYTHON=…" >&2; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or newer is needed, $(PYTHON) is %d.%d: name another one, make PYTHON=python3.13" % sys.version_info[:2])'
	@echo "Making .venv with $(PYTHON) …"
	@"$(PYTHON)" -m venv --clear .venv
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes -r requirements/uv.txt
	@touch $@

$(INSTALLED): $(MADE) $(PINS)
	@echo "Installing into .venv …"
	@$(UV) pip sync --quiet --python .venv --require-hashes $(PINS)
	@touch $@

.PRECIOUS: .venvs/%/.installed
.venvs/%/.installed: $(INSTALLED) requirements/test.txt requirements/django-5.2.txt requirements/django-6.0.txt requirements/django-6.1.txt requirements/lowest.txt
	@echo "Making .venvs/$* …"
	@PYENV_VERSION="$$(pyenv versions --bare 2> /dev/null | paste -s -d : -)" \
		$(UV) venv --quiet --clear --python $(firstword $(subst -, ,$*)) .venvs/$*
	@$(UV) pip sync --quiet --python .venvs/$* --require-hashes requirements/test.txt
	@$(UV) pip install --quiet --python .venvs/$* --require-hashes --no-deps \
		-r requirements/$(patsubst django-lowest,lowest,django-$(lastword $(subst -, ,$*))).txt
	@touch $@
