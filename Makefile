# Each target is one call of `python tools/book.py`; without make, type that call.
PYTHON ?= python3

.PHONY: help book test test-full test-colab serve lab new lint bench pins stamp clean
help book test test-full test-colab serve lab new lint bench pins stamp clean:
	@$(PYTHON) tools/book.py $@ $(ARGS)
.DEFAULT_GOAL := help
