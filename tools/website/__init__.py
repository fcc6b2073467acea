"""The website: what Jupyter Book reads, and what is made of the pages that it writes."""
