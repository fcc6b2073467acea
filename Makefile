# Each target is one call of `python tools/book.py`; without make, type that call.
PYTHON ?= python3

.PHONY: help book test test-colab serve lint bench pins stamp set-address check-release clean
help book test test-colab serve lint bench pins stamp set-address check-release clean:
	@$(PYTHON) tools/book.py $@ $(ARGS)
.DEFAULT_GOAL := help
