# Each target is one call of `python tools/book.py`; without make, type that call.
PYTHON ?= python3

.PHONY: help book pdf epub test test-full test-colab serve lab new lint bench seeds pins stamp set-address check-release clean
help book pdf epub test test-full test-colab serve lab new lint bench seeds pins stamp set-address check-release clean:
	@$(PYTHON) tools/book.py $@ $(ARGS)
.DEFAULT_GOAL := help
