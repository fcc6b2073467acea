"""Answers to the exercises of chapter 15."""

import itertools
from collections import defaultdict, deque

import torch
from planted import Planted, defined, planted
from torch import nn

from chapters_src.exercises import chapter_15

GB = 1e9


@planted("15.1")
def memory() -> Planted:
    all_of, added = chapter_15.GEMMA, chapter_15.ADDED
    adamw, muon, lora = 16 * all_of / GB, 12 * all_of / GB, (4 * all_of + 16 * added) / GB
    return Planted(
        (adamw, muon, lora),
        {
            "weights and gradients only": (8 * all_of / GB, muon, lora),
            "for the weights only": (4 * all_of / GB, muon, lora),
            "one number of each weight": (muon, muon, lora),
            "what adamw takes": (adamw, adamw, lora),
            "have no gradient": (adamw, muon, 16 * (all_of + added) / GB),
            "to be stored": (adamw, muon, (4 * all_of + 12 * added) / GB),
            "to be in memory": (adamw, muon, 16 * added / GB),
            "not 2³⁰": (16 * all_of / 2**30, muon, lora),
            "in gigabytes": (16 * all_of, muon, lora),
            "how many averages": (5.0, muon, lora),
            "one average": (adamw, 5.0, lora),
            "only a value": (adamw, muon, 0.5),
        },
        also_right=((4.29, 3.22, 1.19),),
        secrets=("3.22", "1.19"),
    )


@planted("15.2")
def division() -> Planted:
    (solution,) = defined(15, "divided")

    def uneven(react):
        return lambda g, p, f: react(g) if g % p else solution(g, p, f)

    def refuse(error):
        raise error

    def with_a_loop(global_batch, processes, fits):
        for accumulate in range(1, global_batch + 1):
            blocks, rest = divmod(global_batch, processes * accumulate)
            if rest == 0 and 1 <= blocks <= fits:
                return [blocks, accumulate]
        raise ValueError(f"{global_batch} blocks, {processes} processes")

    return Planted(
        (solution,),
        {
            "whole numbers": (lambda g, p, f: (g / p / 3, 3),),
            "blocks fit at a time": (lambda g, p, f: (g // p, 1),),
            "1 x 8 x 2 is 16": (lambda g, p, f: (min(g, f), 2),),
            "fewer accumulated": (lambda g, p, f: (1, g // p),),
            "does not name 8": (uneven(lambda g: refuse(ValueError("these 3 processes"))),),
            "wanted is a valueerror": (uneven(lambda g: refuse(KeyError(g))),),
            "cannot share": (uneven(lambda g: (1, 1)),),
        },
        also_right=((with_a_loop,),),
        secrets=("divmod", "share % b", "global_batch // processes"),
    )


@planted("15.3")
def ring() -> Planted:
    (solution,) = defined(15, "ring")

    def cheating(vectors, send):
        sums = [sum(column) for column in zip(*vectors, strict=True)]
        return [list(sums) for _ in vectors]

    def whole_vectors(vectors, send):
        n = len(vectors)
        totals, travelling = [list(v) for v in vectors], [list(v) for v in vectors]
        for _ in range(n - 1):
            arrived = [send(i, travelling[i]) for i in range(n)]
            travelling = [arrived[i - 1] for i in range(n)]
            totals = [
                [a + b for a, b in zip(*pair, strict=True)] for pair in zip(totals, travelling, strict=True)
            ]
        return totals

    def in_place(vectors, send):
        for vector in vectors:
            vector[0] = 0
        return vectors

    return Planted(
        (solution,),
        {
            "leaves worker 0 with": (lambda vectors, send: [list(v) for v in vectors],),
            "are allowed": (whole_vectors,),
            "even if nothing arrives": (cheating,),
            "changes its argument": (in_place,),
            "there is no worker": (lambda vectors, send: send(9, [1]),),
        },
        secrets=("reduce-scatter", "all-gather", "(i - r)"),
    )


@planted("15.4")
def shares() -> Planted:
    (solution,) = defined(15, "my_share", itertools=itertools)

    def by_hand(items, process, processes, worker, workers):
        for place, item in enumerate(items):
            if place % processes == process and place // processes % workers == worker:
                yield item

    def only_processes(items, process, processes, worker, workers):
        yield from itertools.islice(items, process, None, processes)

    def only_first_worker(items, process, processes, worker, workers):
        if worker == 0:
            yield from itertools.islice(items, process, None, processes * workers)

    def greedy_first(items, process, processes, worker, workers):
        number, readers = process * workers + worker, processes * workers
        for place, item in enumerate(items):
            if (min(place, readers) if place < 20 else 0) % readers == number:
                yield item

    def reads_all(items, process, processes, worker, workers):
        yield from list(items)[process * workers + worker :: processes * workers]

    def ahead(items, process, processes, worker, workers):
        kept = [item for item, _ in zip(items, range(40), strict=False)]
        yield from solution(itertools.chain(kept, items), process, processes, worker, workers)

    return Planted(
        (solution,),
        {
            "is read more than once": (only_processes,),
            "is read by nobody": (only_first_worker,),
            "one reader gets": (greedy_first,),
            "1,000 items": (reads_all,),
            "too far ahead": (ahead,),
        },
        also_right=((by_hand,),),
        secrets=("islice", "process * workers + worker", "processes * workers"),
    )


@planted("15.5")
def four_bits() -> Planted:
    (solution,) = defined(15, "quantized", torch=torch, nn=nn)

    def by(
        divisor_of, groups_of=lambda matrix, group: matrix.unflatten(-1, (-1, group)), rounding=torch.round
    ):
        def quantized(matrix, bits, group):
            groups = groups_of(matrix, group)
            s = groups.abs().amax(dim=-1, keepdim=True) / divisor_of(bits)
            return (rounding(groups / torch.where(s == 0, 1.0, s)) * s).reshape(matrix.shape)

        return quantized

    def largest(bits):
        return 2 ** (bits - 1) - 1

    def unguarded(matrix, bits, group):
        groups = matrix.unflatten(-1, (-1, group))
        s = groups.abs().amax(dim=-1, keepdim=True) / largest(bits)
        return ((groups / s).round() * s).flatten(-2)

    def in_place(matrix, bits, group):
        matrix.copy_(solution(matrix, bits, group))
        return matrix

    def whole_numbers(matrix, bits, group):
        groups = matrix.unflatten(-1, (-1, group))
        s = groups.abs().amax(dim=-1, keepdim=True) / largest(bits)
        return (groups / s).round().to(torch.int8).flatten(-2)

    def columns(matrix, bits, group):
        s = matrix.abs().amax(dim=0, keepdim=True) / largest(bits)
        return (matrix / s).round() * s

    return Planted(
        (solution,),
        {
            "changes its argument": (in_place,),
            "by their scale again": (whole_numbers,),
            "one scale for the whole matrix": (by(largest, lambda matrix, group: matrix.reshape(1, -1)),),
            "one scale for each row": (by(largest, lambda matrix, group: matrix),),
            "one scale for each column": (columns,),
            "on both sides of zero": (by(lambda bits: 2 ** (bits - 1)),),
            "half of the numbers are below": (by(lambda bits: 2**bits - 1),),
            "nothing is rounded": (lambda matrix, bits, group: matrix.clone(),),
            "cut off": (by(largest, rounding=torch.trunc),),
            "is not what rounding each group": (by(lambda bits: 2**bits),),
            "a matrix of zeros": (unguarded,),
        },
        also_right=((by(largest),),),
        secrets=("2 ** (bits - 1) - 1", "amax"),
    )


@planted("15.6")
def limiter() -> Planted:
    (solution,) = defined(15, "make_limiter")

    def with_deques(limit, seconds):
        passed = defaultdict(deque)

        def allowed(user, now):
            for name in [name for name, times in passed.items() if times[-1] <= now - seconds]:
                del passed[name]
            times = passed.get(user, ())
            while times and times[0] <= now - seconds:
                times.popleft()
            if len(times) < limit:
                passed[user].append(now)
                return True
            return False

        return allowed

    def of_the_clock(now, seconds):
        return now // seconds * seconds

    def variant(key=lambda user: user, window=None, counts_refused=False, late=False, off=0, say=bool):
        def make_limiter(limit, seconds):
            passed = defaultdict(list)

            def allowed(user, now):
                user = key(user)
                start = window(now, seconds) if window else now - seconds
                inside = [t for t in passed[user] if (t >= start if late or window else t > start)]
                for name in [*passed]:
                    passed[name] = [t for t in passed[name] if t >= now - 2 * seconds]
                    if not passed[name]:
                        del passed[name]
                good = len(inside) < limit + off
                if good or counts_refused:
                    passed[user].append(now)
                return say(good)

            return allowed

        return make_limiter

    class NeverForgets:
        def __init__(self, limit, seconds):
            self.limit, self.seconds, self.passed = limit, seconds, {}

        def __call__(self, user, now):
            times = [t for t in self.passed.get(user, []) if t > now - self.seconds]
            self.passed[user] = times if len(times) >= self.limit else [*times, now]
            return len(times) < self.limit

    def nested(limit, seconds):
        kept = {"all": {}}

        def allowed(user, now):
            times = [t for t in kept["all"].get(user, []) if t > now - seconds]
            kept["all"][user] = times if len(times) >= limit else [*times, now]
            return len(times) < limit

        return allowed

    class NowAndThen(NeverForgets):
        """Looks at one user only, and at all of them in every thousandth request."""

        requests = 0

        def __call__(self, user, now):
            self.requests += 1
            if self.requests % 1000 == 0:
                self.passed = {u: times for u, times in self.passed.items() if times[-1] > now - self.seconds}
            return super().__call__(user, now)

    return Planted(
        (solution,),
        {
            "of four requests at once": (variant(off=1),),
            "each user has a limit": (variant(key=lambda user: "all"),),
            "those that were refused do not count": (variant(counts_refused=True),),
            "10 seconds old": (variant(late=True),),
            "a window may begin at any time": (variant(window=of_the_clock),),
            "true or false": (variant(say=int),),
            "users came once": (NeverForgets,),
            "and never again": (nested,),
        },
        also_right=((with_deques,), (NowAndThen,)),
        secrets=("deque", "now - seconds"),
    )
