"""Exercises that answer back: `check("3.1", answer)` says that an answer is right, or what is wrong with it.

`checking` calls the checks and prints what they find. Each chapter's checks are a module of their own,
`chapter_03` say, which is imported when one of them is asked for.
"""

from chapters_src.exercises.checking import check
