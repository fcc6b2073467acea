"""Checks of the exercises of chapter 06, from recurrence to attention."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from chapters_src.data import corners
from chapters_src.exercises.checking import (
    Asked,
    Wrong,
    as_function,
    as_kind,
    as_number,
    as_numbers,
    check_number,
    compare,
    exercise,
    is_text,
    mapping_of,
    show,
)

INPUTS, STATE = 300, 512  # of 6.1
STATES = torch.tensor([[1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0]], dtype=torch.float64)  # of 6.2
ASKING = torch.tensor([-1.5, 0.5], dtype=torch.float64)
W_QUERY = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], dtype=torch.float64)
W_KEY = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 1.0]], dtype=torch.float64)
V = torch.tensor([-1.0, 1.0, 0.5], dtype=torch.float64)
FROM_LOSS = torch.tensor([0.3, -2.0], dtype=torch.float64)
POSITIONS = 1024  # of 6.3
CORNERS, NOISE, STEPS = 8, 0.1, 300  # of 6.4
ANSWERED, NOT_ANSWERED, MOST_OFTEN = 0.95, 0.7, 0.75
SENTENCES, ENOUGH = 5, 3  # of 6.5
TRAINED = 12  # corners in the longest laps of the training, of 6.6


@exercise("6.1")
def weights_of_a_gru(num_weights: object) -> str:
    """Count them by the formula."""
    gate = STATE * INPUTS + STATE * STATE
    slips = {
        "That counts one bias for each gate and the proposal. PyTorch has more.": 3 * (gate + STATE),
        "That leaves out the biases.": 3 * gate,
        "That is one gate's worth.": gate + 2 * STATE,
        "That counts the two gates. What else has matrices of its own?": 2 * (gate + 2 * STATE),
        "That is an LSTM's number.": 4 * (gate + 2 * STATE),
    }
    otherwise = "Take the formulas of the GRU one by one: which matrices and biases are in each?"
    check_number(num_weights, "num_weights", 3 * (gate + 2 * STATE), slips, otherwise)
    return "These are all the weights that `gru_step` takes."


@exercise("6.2")
def gradients_of_three_scores(score_gradients: object) -> str:
    """Compute them by the formula."""
    found = torch.tensor(as_numbers(score_gradients, "score_gradients", 3), dtype=torch.float64)
    alpha = (torch.tanh(ASKING @ W_QUERY.T + STATES @ W_KEY.T) @ V).softmax(dim=0)
    dot = (STATES @ ASKING).softmax(dim=0)
    general = ((STATES @ W_KEY.T) @ (W_QUERY @ ASKING)).softmax(dim=0)

    def gradients(weights: torch.Tensor) -> torch.Tensor:
        return weights * ((STATES - weights @ STATES) @ FROM_LOSS)

    expected, sum_of_all = gradients(alpha), show(found.sum().item())
    of_plain_mean = alpha * ((STATES - STATES.mean(dim=0)) @ FROM_LOSS)
    slips = {
        f"Their sum is {sum_of_all}, not 0. Is the average subtracted?": alpha * (STATES @ FROM_LOSS),
        "These are not multiplied by the weights of the states.": expected / alpha,
        "Every sign is the wrong way around.": -expected,
        "These belong to the dot product; wanted are those of additive attention.": gradients(dot),
        "These belong to the general score; wanted are those of additive attention.": gradients(general),
        "The average that is subtracted is the plain one; the formula has the weighted one.": of_plain_mean,
        f"Their sum is {sum_of_all}. The sum of all has to be 0.": lambda it: abs(it.sum()) > 0.01,
    }
    wrong = " and ".join(f"e_{j + 1}" for j in range(3) if abs(found[j] - expected[j]) > 0.006)
    context = ", ".join(f"{value:.2f}" for value in alpha @ STATES)
    otherwise = f"Not so for {wrong}. Begin with the context: ({context})."
    compare(found, expected, slips, otherwise, within=0.006)
    return "They add up to zero: if all scores rise by the same amount, no weight changes."


@exercise("6.3")
def layers_to_the_first_position(plain: object, dilated: object) -> str:
    """Count by reach: two positions a layer, or twice as many in each."""
    steps = POSITIONS - 1
    reached = show(2 * as_number(plain, "plain"))
    slips = {
        "A window of five reaches two to the left, not five.": math.ceil(steps / 5),
        "Two of the four neighbors lie to the right, where nothing is needed.": math.ceil(steps / 4),
        "There is no half layer.": steps / 2,
    }
    otherwise = f"So many layers reach {reached} positions to the left, not {steps}."
    check_number(plain, "plain", math.ceil(steps / 2), slips, otherwise)
    found = as_number(dilated, "dilated")

    def reach(layers: float) -> float:
        return 2 * (2**layers - 1)

    if not 0 < found < 60 or found != int(found):
        raise Wrong(f"`dilated` is {show(dilated)}. Each layer reaches twice as far as the one before.")
    if reach(found) < steps:
        raise Wrong(f"`dilated` is {show(dilated)}: so many layers reach {reach(found):,.0f} positions back.")
    if reach(found - 1) >= steps:
        raise Wrong(f"`dilated` is {show(dilated)}: one layer less reaches far enough, too.")
    return "For twice the length the first stack needs twice the layers, the dilated one a single layer more."


@exercise("6.4", takes="about ten seconds")
def questions_about_walks(
    easy: object, hard: object, *, share_right: Callable[..., float], make_model: Callable[..., Any]
) -> str:
    """Train a model with and one without positions on each question."""
    asked = {"easy": as_function(easy, "easy(walk)"), "hard": as_function(hard, "hard(walk)")}
    _, labels = _walks(2000, torch.Generator().manual_seed(64))
    for name, question in asked.items():
        answers = [_answer(question, walk) for walk in labels.tolist()]
        share = sum(answers) / len(answers)
        limit = MOST_OFTEN if name == "easy" else NOT_ANSWERED  # who always says the same has to fail
        if not 1 - limit <= share <= limit:
            most = f'"{"yes" if share > 0.5 else "no"}" for {max(share, 1 - share):.0%} of the walks'
            raise Wrong(f"The answer of `{name}` is {most}; at most {limit:.0%} are allowed.")
    found = {}
    for name, question in asked.items():
        for places in (False, True):
            generator = torch.Generator().manual_seed(64)

            def batch(count: int = 64, question=question, generator=generator) -> tuple:
                points, labels = _walks(count, generator)
                answers = [float(_answer(question, walk)) for walk in labels.tolist()]
                return points, None, torch.tensor(answers)

            found[name, places] = share_right(lambda places=places: make_model(CORNERS, places), batch, STEPS)
    told = {key: f"{share:.0%}" for key, share in found.items()}
    without, with_places = (f"With{out} positions {{}} of the answers to" for out in ("out", ""))
    if found["easy", False] < ANSWERED:
        raise Wrong(f"{without.format(told['easy', False])} `easy` are right.")
    if found["easy", True] < ANSWERED:
        raise Wrong(f"{with_places.format(told['easy', True])} `easy` are right: too hard.")
    if found["hard", False] > NOT_ANSWERED:
        asked_back = "Does the order of the corners change your answer often enough?"
        raise Wrong(f"{without.format(told['hard', False])} `hard` are right. {asked_back}")
    if found["hard", True] < ANSWERED:
        raise Wrong(f"{with_places.format(told['hard', True])} `hard` are right: too hard.")
    return (
        f"easy: {told['easy', False]} without positions, {told['easy', True]} with them; hard: "
        f"{told['hard', False]} and {told['hard', True]}."
    )


def _walks(count: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    points, labels = corners.laps(count, CORNERS, noise=NOISE, generator=generator)
    return points[:, :CORNERS], labels[:, :CORNERS]


def _answer(question: Asked, walk: list[int]) -> bool:
    def says(found: Any) -> Any:
        return found.item() if getattr(found, "shape", None) == () else found

    return says(question.gives(lambda found: isinstance(says(found), bool), "True or False", walk))


@exercise("6.5")
def because_of_five_sentences(
    sentences: Any, *, translate: Callable[[str], tuple], known: Mapping[str, int]
) -> str:
    """Translate each, and see where the last word of the clause looks."""
    wanted = "a dictionary from sentences to verbs"
    as_kind(sentences, "sentences", mapping_of(is_text, is_text), wanted)
    if len(sentences) != SENTENCES:
        raise Wrong(f"There are {len(sentences)} sentences; {SENTENCES} are wanted.")
    passed, remarks = 0, []
    for sentence, verb in sentences.items():
        words, german, weights = translate(sentence)
        places = _places_of_verb(sentence, verb, words, known)
        last = _end_of_clause(german)
        if last is None:
            remarks.append(f"{sentence!r}: the translation has no clause with 'weil'")
            continue
        looked_at = int(weights[last].argmax())
        passed += looked_at in places
        if looked_at not in places:
            outside = " outside the clause" if words[looked_at] == verb else ""
            remarks.append(f"{sentence!r}: {german[last]!r} looks at {words[looked_at]!r}{outside}")
    if passed < ENOUGH:
        raise Wrong(f"{passed} of {SENTENCES} pass. {'; '.join(remarks[:3])}.")
    return f"In {passed} of {SENTENCES} the last word of the German clause looks at your verb."


def _places_of_verb(sentence: str, verb: str, words: Sequence[str], known: Mapping[str, int]) -> list[int]:
    """Where the verb stands in the clause; the same word elsewhere does not count."""
    unknown = [word for word in words if word not in known]
    if unknown:
        raise Wrong(f"{sentence!r}: the translator does not know {', '.join(map(repr, unknown))}.")
    if "because" not in words:
        raise Wrong(f"{sentence!r} has no 'because'.")
    start = list(words).index("because")
    end = next((i for i in range(start, len(words)) if words[i] in (",", ".")), len(words))
    places = [i for i in range(start + 1, end) if words[i] == verb]
    if not places:
        raise Wrong(f"{verb!r} is no word of the clause {' '.join(words[start + 1 : end])!r}.")
    return places


def _end_of_clause(german: Sequence[str]) -> int | None:
    """The place of the last word of the clause with weil."""
    low = [word.lower() for word in german]
    if "weil" not in low:
        return None
    start = low.index("weil")
    end = next((i for i in range(start, len(low)) if low[i] in (",", ".", "<end>")), len(low))
    return end - 1 if end - 1 > start else None


@exercise("6.6")
def first_position_that_fails(learned: object, sinusoidal: object) -> str:
    """Compare with the longest laps of the training."""
    slips = {
        "Do you count from 0? The first position is 1.": TRAINED,
        "That is a position of the training. Was the model trained for 700 steps?": lambda it: it < TRAINED,
    }
    for name, answer in (("learned", learned), ("sinusoidal", sinusoidal)):
        otherwise = "An earlier position fails, too: score each position by itself."
        check_number(answer, name, TRAINED + 1, slips, otherwise)
    return "Both kinds fail at the first position that no lap of the training had."
