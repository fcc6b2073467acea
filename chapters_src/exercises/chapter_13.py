"""Checks of the exercises of chapter 13, on decoding."""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from chapters_src import decoding
from chapters_src.exercises.checking import Asked, Wrong, as_function, as_number, exercise, show
from chapters_src.transformer import Config, LanguageModel

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Ids = tuple[int, ...]

NUM_WORDS, LENGTH = 3, 3  # of the toy model of 13.2: words in its vocabulary, words in a text
TINY_VOCABULARY = 5  # of the model of 13.4
STOP = ". "
# For 13.5: without the stop string; never at the end of a beginning; after the last token; in the middle.
STOPPING_TEXTS = ("No such string here.", "One. Two.", "It ends so. ", "A list.  Two spaces follow.")
SENTENCE = [*range(10, 22), 4]  # For 13.7: the ids of a sentence with its line break.


@exercise("13.1")
def temperature_for_a_ratio(temperature: object) -> str:
    """Compute the ratio with a softmax."""
    found = as_number(temperature, "temperature")
    if found <= 0:
        raise Wrong(f"A temperature is above zero, and yours is {show(found)}.")
    for others in ([0.2], [0.1, 0.1], [0.05] * 4):
        logits = torch.tensor([0.6, 0.2, *others], dtype=torch.float64).log()
        log_ratio = (logits[0] - logits[1]).item() / found
        if not math.isclose(log_ratio, math.log(9), rel_tol=1e-3):
            more = "less" if log_ratio < math.log(9) else "more"
            ratio = f"{math.exp(log_ratio):.3g}" if log_ratio < 20 else f"e to the power {log_ratio:.3g}"
            raise Wrong(
                f"At {show(found)} the first is {ratio} times as probable as the second, {more} than asked."
            )
    return "It is the same whatever the other tokens are."


@exercise("13.2")
def model_that_beams_get_wrong(tricky: object) -> str:
    """Search all 27 texts, and with one and two beams."""
    next_word = as_function(tricky, "tricky(beginnings)")
    log_p = _log_probabilities(next_word)
    texts = {
        ids: sum(log_p[ids[:i]][word] for i, word in enumerate(ids))
        for ids in product(range(NUM_WORDS), repeat=LENGTH)
    }
    best, second = sorted(texts, key=texts.__getitem__, reverse=True)[:2]
    if math.isclose(texts[best], texts[second], abs_tol=1e-4):
        raise Wrong(f"Two texts, {best} and {second}, are equally probable. Let only one be the best.")
    one, two = (_beam_search(log_p, num_beams) for num_beams in (1, 2))

    def shown(ids: Ids) -> str:
        return f"{ids}, with probability {math.exp(texts[ids]):.3f}"

    if one != best:
        raise Wrong(f"One beam finds {shown(one)}. It should find the best text, {shown(best)}.")
    if two == best:
        raise Wrong(
            f"Two beams find the best text too, {shown(best)}. Look at the candidates after two words: it "
            "has to be dropped there."
        )
    probabilities = (f"{math.exp(texts[ids]):.3f}" for ids in (best, two))
    return "The best text has probability {}, and what two beams find has {}.".format(*probabilities)


def _log_probabilities(next_word: Asked) -> dict[Ids, list[float]]:
    """Ask for the next word after all beginnings, each alone and those of a length together."""
    found: dict[Ids, list[float]] = {}
    for length in range(LENGTH):
        beginnings = [list(ids) for ids in product(range(NUM_WORDS), repeat=length)]
        alone = [_rows(next_word, [ids])[0] for ids in beginnings]
        for ids, row in zip(beginnings, alone, strict=True):
            total = row.exp().sum().item()
            if (row >= 0).all() and math.isclose(row.sum().item(), 1, abs_tol=1e-3):
                raise Wrong(f"After {ids} you give probabilities; wanted are their logarithms.")
            if not math.isclose(total, 1, abs_tol=1e-3):
                raise Wrong(f"After {ids} the probabilities of the three words add up to {total:.3g}.")
            found[tuple(ids)] = row.tolist()
        for ids, row, other in zip(beginnings, alone, _rows(next_word, beginnings), strict=True):
            if not torch.allclose(row, other, atol=1e-5):
                raise Wrong(
                    f"{next_word.called([ids])} is right for one beginning, but among "
                    f"{len(beginnings)} of them the row of {ids} is another. Is each row in its place?"
                )
    return found


def _rows(next_word: Asked, beginnings: list[list[int]]) -> Tensor:
    rows = next_word(beginnings)
    wanted = (len(beginnings), NUM_WORDS)
    if not isinstance(rows, Tensor) or rows.shape != wanted:
        raise Wrong(
            f"{next_word.called(beginnings)} gives {show(rows)}; wanted a tensor of shape {wanted}: "
            "a row for each beginning, a column for each word."
        )
    return rows.detach().cpu().double()


def _beam_search(log_p: dict[Ids, list[float]], num_beams: int) -> Ids:
    beams = {(): 0.0}
    for _ in range(LENGTH):
        longer = {
            (*ids, word): total + more for ids, total in beams.items() for word, more in enumerate(log_p[ids])
        }
        beams = dict(sorted(longer.items(), key=lambda item: -item[1])[:num_beams])
    return next(iter(beams))


@exercise("13.3")
def draft_that_copies(copying: object, *, vocab_size: int) -> str:
    """Compare the proposed token with all that followed the last two tokens earlier."""
    draft = as_function(copying, "copying(ids)", may_give_none=True)
    a, b, c, d = range(vocab_size - 4, vocab_size)
    for ids in ([a, b, c, a, b], [d, d, a, c, b, d, a, c], [a, b, c, a, b, d, a, b], [b, b, b, b]):
        proposed = _proposed(draft, ids, vocab_size)
        followed = {z for *xy, z in zip(ids, ids[1:], ids[2:], strict=False) if xy == ids[-2:]}
        if proposed is None:
            raise Wrong(f"{draft.called(ids)} gives None, but {ids[-2:]} occurs earlier in these ids.")
        if proposed not in followed:
            own = " That is the end of the pair, not what comes after it." * (proposed == ids[-1])
            raise Wrong(
                f"{draft.called(ids)} proposes {proposed}, which did not follow {ids[-2:]} earlier.{own}"
            )
    for ids, why in (
        (
            [a, b, c, d, b],
            f"{[d, b]} does not occur earlier, only {b} does",
        ),
        ([a, b], f"{[a, b]} occurs only at the end"),
        ([a], "there is only one token"),
    ):
        if (proposed := _proposed(draft, ids, vocab_size)) is not None:
            raise Wrong(f"{draft.called(ids)} proposes {proposed}, but {why}. Return None then.")
    return "It proposes what came next before. Its rate of acceptance is for you to measure and explain."


def _proposed(draft: Asked, ids: list[int], vocab_size: int) -> int | None:
    logits = draft(ids)
    if logits is None:
        return None
    if not isinstance(logits, Tensor) or logits.shape != (vocab_size,):
        raise Wrong(
            f"{draft.called(ids)} gives {show(logits)}; wanted the logits of the next token, a tensor of "
            f"shape ({vocab_size},), or None."
        )
    if logits.max() == logits.min():
        raise Wrong(f"{draft.called(ids)} gives logits that are all the same, so no token is proposed.")
    return int(logits.argmax())


@exercise("13.4")
def best_of_draws(best_of: object) -> str:
    """Try a model whose texts can all be listed: cold draws are greedy, and many draws find the best."""
    search = as_function(best_of, "best_of(model, prompts, temperature, num_draws, num_tokens, generator)")
    model, prompts = _tiny_model(), [[1, 2], [3], [2, 4, 1]]

    def run(heat: float, num_draws: int, num_tokens: int, seed: int = 0) -> list[Ids]:
        inputs = (model, prompts, heat, num_draws, num_tokens, torch.Generator().manual_seed(seed))
        return _ids_of_best(search(*inputs), search.called(*inputs), model, prompts, num_tokens)

    if run(1.0, 2, 4) != run(1.0, 2, 4):
        raise Wrong("Two generators in the same state give different texts: draw from `generator` alone.")
    texts = list(product(range(TINY_VOCABULARY), repeat=2))
    scored = (decoding.sequence_log_probability(model, [prompt] * len(texts), texts) for prompt in prompts)
    log_p = [dict(zip(texts, (each.log_probability for each in row), strict=True)) for row in scored]
    for ids, prompt, totals in zip(run(1.0, 400, 2), prompts, log_p, strict=True):
        if totals[ids] < max(totals.values()) - 1e-3:
            rank = sorted(totals.values(), reverse=True).index(totals[ids]) + 1
            raise Wrong(
                f"Of 400 draws of two tokens after {prompt}, from a model with only {len(texts)} such texts, "
                f"one is almost surely the most probable text. Yours is number {rank} of the {len(texts)}."
            )
    greedy = [each.ids for each in decoding.greedy(model, prompts, max_new_tokens=4)]
    cold, hot = run(0.02, 1, 4), run(50.0, 1, 4)
    if cold != greedy and hot == greedy:
        raise Wrong(
            "One draw at temperature 50 gives the greedy text, one at 0.02 does not: it acts upside down."
        )
    if cold != greedy:
        raise Wrong("One draw at temperature 0.02 is almost surely the greedy text, and yours is not.")
    alone = [run(1.0, 1, 2, seed) for seed in range(20)]
    mean = np.mean([totals[ids] for rows in alone for totals, ids in zip(log_p, rows, strict=True)])
    expected = np.mean([sum(p * math.exp(p) for p in totals.values()) for totals in log_p])
    if abs(mean - expected) > 0.6:  # more than four standard errors
        raise Wrong(
            f"One draw at temperature 1 has a log-probability of {expected:.1f} on average in a small model, "
            f"and yours {mean:.1f}: is `num_draws` in use?"
        )
    return "It gives the most probable of the draws, measured by the model itself. Now compare it with beams."


def _tiny_model() -> LanguageModel:
    sizes = {"d_model": 8, "num_layers": 1, "num_heads": 2, "feed_forward_width": 8, "max_length": 16}
    model = LanguageModel(Config(vocab_size=TINY_VOCABULARY, tie_weights=False, **sizes)).eval()
    generator = torch.Generator().manual_seed(18)
    for tensor in model.state_dict().values():
        tensor.copy_(0.6 * torch.randn(tensor.shape, generator=generator))
    return model


def _ids_of_best(
    found: Any, call: str, model: LanguageModel, prompts: list[list[int]], num_tokens: int
) -> list[Ids]:
    """Take what was found, one continuation for each prompt, which has to belong to it."""
    is_list = isinstance(found, list | tuple) and len(found) == len(prompts)
    if not is_list or not all(hasattr(each, "ids") and hasattr(each, "log_probability") for each in found):
        what = f"{len(found)} of them" if isinstance(found, list | tuple) else show(found)
        raise Wrong(
            f"{call}: wanted a list with one continuation for each of {len(prompts)} prompts, not {what}."
        )
    rows = [tuple(each.ids) for each in found]
    if any(len(ids) != num_tokens for ids in rows):
        raise Wrong(f"{call}: wanted continuations of {num_tokens} tokens, not {[len(ids) for ids in rows]}.")
    for i, (each, scored) in enumerate(
        zip(found, decoding.sequence_log_probability(model, prompts, rows), strict=True)
    ):
        if not math.isclose(each.log_probability, scored.log_probability, abs_tol=1e-3):
            raise Wrong(
                f"What you give for prompt {i} was not drawn after this prompt: the model "
                "finds it more or less probable than it says. Which rows of the batch belong to which prompt?"
            )
    return rows


@exercise("13.5")
def stop_strings(simple_fires: object, stop_fires: object, *, tokenizer: "PreTrainedTokenizerBase") -> str:
    """Decode every beginning of four texts."""
    encoded = {text: tokenizer.encode(text, add_special_tokens=False) for text in STOPPING_TEXTS}
    simple = as_function(simple_fires, "simple_fires(ids)", may_give_none=True)
    for text, ids in encoded.items():
        fires = [n for n in range(1, len(ids) + 1) if tokenizer.decode(ids[:n]).endswith(STOP)]
        found = _truth(simple, ids)
        if found and not fires:
            raise Wrong(
                f"On the ids of {text!r} `{simple.name}` fires, but after no token does the text end "
                f"with {STOP!r}."
            )
        if fires and not found:
            raise Wrong(
                f"On the ids of {text!r} `{simple.name}` does not fire, but after token {fires[0]} of "
                f"{len(ids)} the text ends with {STOP!r}."
            )
    stop = as_function(stop_fires, "stop_fires(ids)", may_give_none=True)
    for text, ids in encoded.items():
        if _truth(stop, ids) != (STOP in text):
            fires = "does not fire" if STOP in text else "fires"
            raise Wrong(f"On the ids of {text!r} `{stop.name}` {fires}. Is it asked at every beginning?")
    return "Now count on held-out paragraphs how often each fires."


def _truth(fires: Asked, ids: list[int]) -> bool:
    found = fires(ids)
    if not isinstance(found, bool | np.bool_):
        raise Wrong(f"{fires.called(ids)} gives {show(found)}; wanted True or False.")
    return bool(found)


@exercise("13.6")
def minimum_bayes_risk(likeness: object, most_agreed: object) -> str:
    """Compare with counts, and with the sums of likenesses."""
    ask = as_function(likeness, "likeness(a, b)")
    for a, b in (
        ([1, 2], [1, 2]),
        ([1, 2], [3, 4]),
        ([1, 2, 3], [3, 4]),
        ([1, 1, 2], [1, 1, 2, 3]),
        ([1, 1, 2], [1, 3, 3]),
        ([1, 2], [2, 1, 1, 5]),
    ):
        found, expected = as_number(ask(a, b), ask.called(a, b)), _likeness(a, b)
        if not math.isclose(found, expected, abs_tol=1e-6):
            raise Wrong(f"{ask.called(a, b)} gives {show(found)}. {_about(found, expected, a, b)}")
    choose = as_function(most_agreed, "most_agreed(drawn)")
    for drawn in (
        [[1, 2, 3], [1, 2, 4], [7, 8, 9], [1, 2, 5]],
        [[1, 2, 3, 5], [6, 7, 8], [1, 2, 3, 4, 9], [1, 2, 3, 4]],
    ):
        _check_choice(choose, drawn)
    return (
        "Both do what they should. Whether the chosen text is closer to the real one is for you to measure."
    )


def _likeness(a: Sequence[int], b: Sequence[int]) -> float:
    return 2 * sum((Counter(a) & Counter(b)).values()) / (len(a) + len(b))


def _about(found: float, expected: float, a: list[int], b: list[int]) -> str:
    """Say in which way a likeness differs from what it should be."""
    if math.isclose(2 * found, expected):
        return "That is half of what it should be: two equal lists are to have a likeness of 1."
    common, sizes = len(set(a) & set(b)), (len(a) + len(b), len(set(a)) + len(set(b)))
    if any(math.isclose(found, 2 * common / size) for size in sizes):
        return "That counts a token once, however often both lists have it."
    if found > 1:
        return "A likeness is at most 1."
    common = sum((Counter(a) & Counter(b)).values())
    return (
        f"That is too {'high' if found > expected else 'low'}: the lists have lengths {len(a)} and {len(b)}, "
        f"and {common} in common."
    )


def _check_choice(choose: Asked, drawn: list[list[int]]) -> None:
    found, call = choose(drawn), choose.called(drawn)
    if not isinstance(found, list | tuple) or list(found) not in drawn:
        raise Wrong(f"{call} gives {show(found)}; wanted one of these lists.")
    sums = [sum(_likeness(a, b) for b in drawn) for a in drawn]
    chosen = sums[drawn.index(list(found))]
    if chosen == min(sums):
        raise Wrong(f"{call} gives {show(found)}, the one that is least like the others.")
    if chosen < max(sums):
        raise Wrong(f"{call} gives {show(found)}, and another one is more like the rest, taken together.")


@exercise("13.7")
def orders_of_a_sentence(one_order: object, new_orders: object) -> str:
    """Look at the five parts: the same tokens, in orders that are new or not."""
    once = as_function(one_order, "one_order(ids, generator)")
    parts = _five_parts(once)
    if any(part != parts[0] for part in parts):
        raise Wrong(f"`{once.name}` gives orders that differ; all five should have the one that was drawn.")
    if parts[0] == SENTENCE:
        raise Wrong(f"`{once.name}` leaves the tokens in the order of the sentence.")
    each = as_function(new_orders, "new_orders(ids, generator)")
    parts = _five_parts(each)
    if SENTENCE in parts:
        raise Wrong(f"A part of `{each.name}` has the order of the sentence; all five should be random.")
    if len(set(map(tuple, parts))) < 5:
        raise Wrong(f"`{each.name}` gives the same order more than once; each part should have its own.")
    return "Measure both with `mean_scores`. What else could make the second one gain?"


def _five_parts(shuffle: Asked) -> list[list[int]]:
    """Ask for the parts, twice with equal generators."""
    first, again = (shuffle(SENTENCE, np.random.default_rng(0)) for _ in range(2))
    first, again = (parts.tolist() if isinstance(parts, np.ndarray) else parts for parts in (first, again))
    call = shuffle.called(SENTENCE, np.random.default_rng(0))
    if not isinstance(first, list | tuple) or len(first) != 5:
        raise Wrong(f"{call} gives {show(first)}; wanted five parts, each a list of ids.")
    first, again = ([np.asarray(part).tolist() for part in parts] for parts in (first, again))
    for part in first:
        if Counter(part) != Counter(SENTENCE):
            raise Wrong(f"{call} has a part {show(part)}: not the tokens of the sentence, each as often.")
    if first != again:
        raise Wrong("Two generators in the same state give different orders: draw from `generator` alone.")
    return first
