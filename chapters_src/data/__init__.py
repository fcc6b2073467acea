"""The data sets of the book: one module each, its files and its card beside it."""
