"""The whole book in one file: PDF and EPUB, made from the website."""
