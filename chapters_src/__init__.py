"""The helper package of the book Transformers, Taken Apart.

The notebooks build each idea small, in their own cells. This package holds the fuller form that two or more
chapters import, or that needs tests beyond its page.
"""
