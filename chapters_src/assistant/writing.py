"""What an assistant writes: its turns, greedily, several prompts at once."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from chapters_src.assistant.template import END, encode_turns, marks, turns
from chapters_src.decoding import Stop, greedy
from chapters_src.transformer import LanguageModel


class Written(NamedTuple):
    """An answer, and whether it ended by itself."""

    text: str
    ended: bool


def answer(
    model: LanguageModel,
    tokenizer: Any,
    asked: Sequence[tuple[str, str]],
    *,
    max_new_tokens: int = 96,
    batch_size: int = 8,
) -> list[Written]:
    """Answer questions, each in a conversation of its own, with the most probable tokens.

    Args:
        model: a language model of ours, in evaluation mode.
        tokenizer: Gemma's, of Transformers.
        asked: passages, which may be empty, with their questions.
        max_new_tokens: where an answer is cut off.
        batch_size: how many are written at once; similar lengths are written together.

    Returns:
        The answers, in the order of the questions.
    """
    prompts = [encode_turns(tokenizer, turns(*each), add_generation_prompt=True) for each in asked]
    return write(model, tokenizer, prompts, max_new_tokens=max_new_tokens, batch_size=batch_size)


def write(
    model: LanguageModel,
    tokenizer: Any,
    prompts: Sequence[Sequence[int]],
    *,
    max_new_tokens: int = 96,
    batch_size: int = 8,
    stop_strings: Sequence[str] = (),
) -> list[Written]:
    """Continue prompts with the most probable tokens, up to the end of the turn or of the text.

    The continuations come without the mark or string that ended them. Arguments are as for `answer`;
    `stop_strings` end a continuation too, for a model that knows no marks.
    """
    stop = Stop((marks(tokenizer)[1], tokenizer.eos_token_id), stop_strings, tokenizer)
    order = sorted(range(len(prompts)), key=lambda i: len(prompts[i]))
    found = [Written("", False)] * len(prompts)
    for start in range(0, len(order), batch_size):
        chosen = order[start : start + batch_size]
        batch = [prompts[i] for i in chosen]
        for i, each in zip(
            chosen, greedy(model, batch, max_new_tokens=max_new_tokens, stop=stop), strict=True
        ):
            found[i] = Written((each.text or "").replace(END, "").strip(), each.finished != "length")
    return found
