"""Checks of the exercises of chapter 15, on training in several processes, and on shipping."""

import bisect
import itertools
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from chapters_src.exercises.checking import (
    Asked,
    Wrong,
    as_function,
    as_number,
    check_number,
    compare,
    exercise,
    is_near,
    sequence_of,
    show,
)

GEMMA, ADDED = 268_098_176, 7_372_800  # of 15.1: weights of Gemma 3 270M, and of a low-rank update
TOLERANCE = 0.006  # of 15.1: gigabytes, for two decimals
DIVISIONS = ((8, 1, 8), (8, 2, 4), (64, 2, 8), (48, 3, 5), (42, 2, 4), (96, 8, 100), (14, 2, 6), (13, 1, 5))
IMPOSSIBLE = ((8, 3, 8), (2, 4, 8))  # of 15.2: blocks that the processes cannot share
RINGS = (2, 3, 5, 8)  # of 15.3: workers
READERS = ((1, 1), (2, 1), (1, 3), (2, 3), (4, 2))  # of 15.4: processes, and workers of each
AHEAD = 2  # of 15.4: rounds of all readers that one may read beyond what it has yielded


@exercise("15.1")
def bytes_of_training(adamw: object, muon: object, lora: object) -> str:
    """Compute the three from 4 bytes for a weight, for its gradient, and for each average."""
    wanted = {
        "adamw": (16 * GEMMA, "Weights, gradients, and how many averages?"),
        "muon": (12 * GEMMA, "Weights, gradients, and one average."),
        "lora": (4 * GEMMA + 16 * ADDED, "Who has a gradient and averages, and who only a value?"),
    }
    bytes_of = {
        "That is enough for weights and gradients only.": 8 * GEMMA,
        "That is enough for the weights only.": 4 * GEMMA,
        "One number of each weight is missing.": 12 * GEMMA,
        "That is what AdamW takes for all weights.": 16 * GEMMA,
        "Frozen weights have no gradient and no averages.": 16 * (GEMMA + ADDED),
        "The additional weights have to be stored, too.": 4 * GEMMA + 12 * ADDED,
        "The frozen weights have to be in memory, too.": 16 * ADDED,
    }
    near = TOLERANCE / 3
    slips: dict[str, Any] = {
        hint: lambda found, size=size: is_near(found, size / 1e9, near) for hint, size in bytes_of.items()
    }
    slips["A gigabyte is 10⁹ bytes here, not 2³⁰."] = lambda found: any(
        is_near(found, size / 2**30, near) for size in bytes_of.values()
    )
    slips["In gigabytes, please."] = lambda found: found > 1_000
    for (name, (right, hint)), answer in zip(wanted.items(), (adamw, muon, lora), strict=True):
        check_number(answer, name, right / 1e9, slips, hint, within=TOLERANCE)
    return "Freezing saves gradients and averages, three quarters of the memory, but not the weights."


@exercise("15.2")
def global_batch_divided(divided: object) -> str:
    """Compare with the best division that trying all blocks finds."""
    asked = as_function(divided, "divided(global_batch, processes, fits)")
    for task in DIVISIONS:
        found = asked.gives(sequence_of(length=2), "(blocks, accumulate)", *task)
        blocks, accumulate = (as_number(each, "a factor") for each in found)
        start = f"{asked.called(*task)} gives {show(tuple(found))}. "
        if blocks % 1 or accumulate % 1 or min(blocks, accumulate) < 1:
            raise Wrong(start + "Both have to be whole numbers, at least 1.")
        global_batch, processes, fits = task
        if blocks > fits:
            raise Wrong(start + f"No more than {fits} blocks fit at a time.")
        if blocks * accumulate * processes != global_batch:
            product = f"{processes} x {blocks:.0f} x {accumulate:.0f}"
            raise Wrong(f"{start}{product} is {blocks * accumulate * processes:.0f}.")
        share = global_batch // processes
        if accumulate > min(share // b for b in range(1, fits + 1) if share % b == 0):
            raise Wrong(start + "It can be done with fewer accumulated batches.")
    for task in IMPOSSIBLE:
        _refused(divided, task)
    return "Eight divisions have the right product, with as few accumulated batches as can be."


def _refused(divided: Any, task: tuple[int, int, int]) -> None:
    call = f"divided{task}"
    try:
        found = divided(*task)
    except ValueError as error:
        if missing := [number for number in task[:2] if str(number) not in str(error)]:
            raise Wrong(f"The message of {call}, {str(error)!r}, does not name {missing[0]}.") from None
        return
    except Exception as error:
        raise Wrong(f"{call} raises {type(error).__name__}; wanted is a ValueError.") from None
    raise Wrong(f"{call} gives {show(found)}, but {task[1]} processes cannot share {task[0]} blocks equally.")


@exercise("15.3")
def all_reduce_in_a_ring(ring: object) -> str:
    """Count what travels, compare with sums, and see whether lost messages make a difference."""
    asked = as_function(ring, "ring(vectors, send)")
    for n in RINGS:
        vectors = [[(7 * i + 3 * j) % 11 + 10 * i for j in range(n)] for i in range(n)]
        sums = [sum(column) for column in zip(*vectors, strict=True)]
        sent = [0] * n
        found = asked(vectors, _sender(sent, n))
        call = f"With {n} workers, {asked.name}"
        if not isinstance(found, list | tuple) or len(found) != n:
            raise Wrong(f"{call} gives {show(found)}; wanted is a list with a vector for each worker.")
        for i, vector in enumerate(found):
            if not isinstance(vector, Sequence) or list(vector) != sums:
                raise Wrong(f"{call} leaves worker {i} with {show(vector)}; the sums are {show(sums)}.")
        if max(sent) > 2 * (n - 1):
            worst = sent.index(max(sent))
            raise Wrong(f"{call} lets worker {worst} send {max(sent)} numbers; {2 * (n - 1)} are allowed.")
        lost = asked(vectors, _sender([0] * n, n, lose=True))
        if [list(vector) for vector in lost] == [sums] * n:
            raise Wrong(f"{call} finds the sums even if nothing arrives: numbers travel only through `send`.")
    return "Rings of 2 to 8 workers end with all sums. Each worker sends less than twice its vector."


def _sender(sent: list[int], n: int, *, lose: bool = False) -> Any:
    def send(i: int, values: Sequence[float]) -> list[float]:
        if not isinstance(i, int) or not 0 <= i < n:
            raise ValueError(f"there is no worker {i!r} among {n}")
        if not isinstance(values, list | tuple):
            raise TypeError(f"send takes a list of numbers, not {values!r}")
        sent[i] += len(values)
        return [0 for _ in values] if lose else list(values)

    return send


@exercise("15.4")
def shares_of_a_stream(my_share: object) -> str:
    """Let all readers read a counted stream, then an endless one."""
    asked = as_function(my_share, "my_share(items, process, processes, worker, workers)")
    for processes, workers in READERS:
        places = list(itertools.product(range(processes), range(workers)))
        shares = [_taken(asked, iter(range(25)), place, processes, workers) for place in places]
        setting = f"With {processes} process(es) of {workers} worker(s), "
        everything = sorted(itertools.chain(*shares))
        if twice := [item for item, after in itertools.pairwise(everything) if item == after]:
            raise Wrong(setting + f"item {twice[0]} is read more than once.")
        missing = set(range(25)) - set(everything)
        if missing or len(everything) != 25:
            raise Wrong(setting + f"item {min(missing)} is read by nobody.")
        sizes = [len(share) for share in shares]
        if max(sizes) - min(sizes) > 1:
            raise Wrong(setting + f"one reader gets {max(sizes)} of 25 items and another {min(sizes)}.")
        _check_endless(asked, processes, workers)
    return "Every item is read once, by five arrangements of readers, and an endless stream is no problem."


def _taken(asked: Asked, items: Iterator, place: tuple[int, int], processes: int, workers: int) -> list:
    found = asked(items, place[0], processes, place[1], workers)
    if isinstance(found, list | tuple) or not hasattr(found, "__next__"):
        raise Wrong(f"{asked.name} gives {show(found)}; wanted is a generator, with `yield`.")
    return list(itertools.islice(found, 30))


def _check_endless(asked: Asked, processes: int, workers: int) -> None:
    read = 0

    def endless() -> Iterator[int]:
        nonlocal read
        while read < 1_000:
            read += 1
            yield read
        raise Wrong(f"{asked.name} reads 1,000 items of a stream before it yields three.")

    share = asked(endless(), 0, processes, 0, workers)
    for _ in range(3):
        next(share)
    if read > (3 + AHEAD) * processes * workers:
        raise Wrong(f"{asked.name} has read {read} items when it yields its third: that is too far ahead.")


def _rounded(matrix: Tensor, bits: int, group: int, divisor: int = 0) -> tuple[Tensor, Tensor]:
    """Quantize group by group, and return the scale of each weight, too."""
    largest = divisor or 2 ** (bits - 1) - 1
    result, scales = torch.empty_like(matrix), torch.empty_like(matrix)
    for row in range(matrix.shape[0]):
        for start in range(0, matrix.shape[1], group):
            part = matrix[row, start : start + group]
            scale = part.abs().max() / largest
            scales[row, start : start + group] = scale
            result[row, start : start + group] = (part / scale).round() * scale if scale else 0.0
    return result, scales


@exercise("15.5")
def four_bits(quantized: object) -> str:
    """Compare with a loop over groups, then with the bound of the error."""
    asked = as_function(quantized, "quantized(W, bits, group)")
    generator = torch.Generator().manual_seed(15)
    for bits, group in ((8, 4), (4, 4), (4, 16), (3, 8)):
        matrix = torch.randn(6, 16, generator=generator)
        matrix[1, 3] = 9.0  # one large weight
        label = f"quantized(W, {bits}, {group})"
        found = asked.tensor(matrix.shape, matrix, bits, group)
        if not found.is_floating_point():
            raise Wrong(f"{label} gives whole numbers. Multiply them by their scale again.")
        expected, scales = _rounded(matrix, bits, group)
        half, full = 2 ** (bits - 1), 2**bits - 1
        on_both_sides = "how large is the largest whole number on both sides of zero?"
        slips = {
            "has one scale for the whole matrix.": _rounded(matrix.view(1, -1), bits, 96)[0].view(6, 16),
            "has one scale for each row, whatever the group is.": _rounded(matrix, bits, 16)[0],
            "has one scale for each column.": _rounded(matrix.T, bits, 6)[0].T,
            f"divides by {half}; {on_both_sides}": _rounded(matrix, bits, group, half)[0],
            f"divides by {full}; half of the numbers are below zero.": _rounded(matrix, bits, group, full)[0],
            "gives W as it was: nothing is rounded.": matrix,
            "has an error above half of its group's scale. Is a number cut off, not rounded?": (
                lambda it, matrix=matrix, scales=scales: ((it - matrix).abs() / scales).max() > 0.51
            ),
        }
        otherwise = "is not what rounding each group by itself gives."
        compare(found, expected, slips, otherwise, start=f"{label} ", within=1e-5)
    zeros = asked(torch.zeros(2, 8), 4, 4)
    if not torch.equal(zeros, torch.zeros(2, 8)):
        raise Wrong(f"A matrix of zeros becomes {show(zeros)}.")
    return "No weight is off by more than half of its group's scale."


LIMIT, SECONDS = 3, 10


def _oracle(requests: list[tuple[str, float]]) -> list[bool]:
    """What passes, by the definition: look at the window that ends with each request."""
    passed: dict[str, list[float]] = defaultdict(list)
    answers = []
    for user, now in requests:
        inside = len(passed[user]) - bisect.bisect_right(passed[user], now - SECONDS)
        answers.append(inside < LIMIT)
        if answers[-1]:
            passed[user].append(now)
    return answers


def _random_requests() -> list[tuple[str, float]]:
    generator = torch.Generator().manual_seed(156)
    gaps = torch.randint(0, 5, (200,), generator=generator).tolist()
    users = torch.randint(0, 3, (200,), generator=generator).tolist()
    return [("abc"[user], float(now)) for user, now in zip(users, itertools.accumulate(gaps), strict=True)]


@exercise("15.6")
def fair_limiter(make_limiter: object) -> str:
    """Send requests one after the other, and compare with the definition."""
    asked = as_function(make_limiter, "make_limiter(limit, seconds)")
    new = f"make_limiter({LIMIT}, {SECONDS})"
    three = [("a", 0.0)] * 3
    stories = (
        ([("a", 0.0)] * 4, "Of four requests at once, {found}; the limit is 3."),
        ([*three, ("b", 1.0)], "After three of a, one comes from b: {found}. Each user has a limit."),
        ([*three, ("a", 10.0)], "Three at 0, one at 10: {found}. At 10 the first three are 10 seconds old."),
        (
            [*three, *[("a", 9.0)] * 3, ("a", 10.0)],
            "Three at 0, three at 9, and one at 10: {found}. Those that were refused do not count.",
        ),
        (
            [("a", 9.0)] * 3 + [("a", 11.0)],
            "Three pass at 9, and one comes at 11: {found}. A window may begin at any time.",
        ),
        ([("a", float(now)) for now in (0, 5, 9, 10, 11)], "At 0, 5, 9, 10 and 11: {found}."),
        (_random_requests(), "Of 200 requests of three users at random times, some get another answer."),
    )
    for requests, words in stories:
        allowed = as_function(asked(LIMIT, SECONDS), "allowed(user, now)")
        found = [allowed(user, now) for user, now in requests]
        for each in found:
            if not isinstance(each, bool):
                raise Wrong(f"{new} has to give a function that says True or False, not {show(each)}.")
        if found != _oracle(requests):
            said = ", ".join("passes" if each else "refused" for each in found[:8])
            raise Wrong(f"{new}: {words.format(found=said)}")
    first, second = asked(LIMIT, SECONDS), asked(LIMIT, SECONDS)
    if [first("a", 0.0) for _ in range(LIMIT)] and not second("a", 0.0):
        raise Wrong(f"Two limiters share what they remember: a second {new} refuses its first request.")
    kept = _kept(asked(LIMIT, SECONDS))
    if kept > 200:
        came = f"{GONE} users came once and never again, then one came {LAST:,} times"
        raise Wrong(f"{came}: it remembers {kept:,} things.")
    return "It passes as many as it may, and forgets who is gone."


GONE, LAST = 500, 2_000  # of 15.6: users who come once; requests after them
HOLDERS = ("__dict__", "__self__", "__func__", "__defaults__", "__kwdefaults__", "func", "args", "keywords")


def _kept(allowed: Callable[[str, float], bool]) -> int:
    """How many things a limiter holds after many users who never come back, and many requests since."""
    for number in range(GONE + LAST):
        user = f"user {number}" if number < GONE else "the last one"
        allowed(user, SECONDS * 2.0 * number)
    return _size(allowed, set())


def _size(thing: object, seen: set[int]) -> int:
    """How many things containers hold that can be reached by attributes, closures and containers."""
    if id(thing) in seen or isinstance(thing, str | bytes | int | float | type | ModuleType | None):
        return 0
    seen.add(id(thing))
    inside: list[object] = []
    if isinstance(thing, dict):
        inside += [*thing.keys(), *thing.values()]
    elif isinstance(thing, list | tuple | set | frozenset | deque):
        inside += thing
    number = len(inside)
    inside += [cell.cell_contents for cell in getattr(thing, "__closure__", None) or ()]
    names = [*HOLDERS, *getattr(type(thing), "__slots__", ())]
    inside += [getattr(thing, name, None) for name in names]
    return number + sum(_size(each, seen) for each in inside)
