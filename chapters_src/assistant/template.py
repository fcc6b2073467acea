"""Turns of a conversation as one line of ids, with Gemma's marks.

A base model has no chat template. The two marks are pieces of its vocabulary, so a template only has to put
them where turns begin and end. Chapter 16 writes this one.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

START, END = "<start_of_turn>", "<end_of_turn>"

# Jinja: what `tokenizer.apply_chat_template` fills in.
TEMPLATE = (
    "{{ bos_token }}"
    "{% for turn in messages %}"
    "<start_of_turn>{{ 'model' if turn.role == 'assistant' else turn.role }}\n"
    "{{ turn.content | trim }}<end_of_turn>\n"
    "{% endfor %}"
    "{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)

Turn = dict[str, str]  # "role", user or assistant, and "content".


class Pair(NamedTuple):
    """A prompt that ends where the model's turn begins, and the answer up to the end of its turn, as ids."""

    prompt: list[int]
    answer: list[int]


def turns(passage: str, question: str, answer: str | None = None) -> list[Turn]:
    """Return the conversation of one question, one or two turns; an answer of None is still to be written.

    The user's turn has the passage first, which may be empty, then an empty line, then the question.
    """
    asked = {"role": "user", "content": "\n\n".join(filter(None, (passage.strip(), question.strip())))}
    return [asked] if answer is None else [asked, {"role": "assistant", "content": answer}]


def encode_turns(tokenizer: Any, messages: Sequence[Turn], *, add_generation_prompt: bool) -> list[int]:
    """Encode turns, each with "role" and "content", so that nothing inside of a turn becomes a mark.

    For texts without marks these are the ids of `apply_chat_template` with `TEMPLATE`, from the token that
    begins a text. That one takes a mark that somebody has typed for a real one. The tokenizer is Gemma's, of
    Transformers; `add_generation_prompt` begins the model's next turn.

    Raises:
        ValueError: the tokenizer has no marks, or a role is neither user nor assistant.
    """
    start, end = marks(tokenizer)
    ids = [tokenizer.bos_token_id]
    for turn in messages:
        if turn["role"] not in ("user", "assistant"):
            raise ValueError(f"role={turn['role']!r} is neither 'user' nor 'assistant'")
        role = "model" if turn["role"] == "assistant" else "user"
        ids += [start, *safe(tokenizer, f"{role}\n{turn['content'].strip()}"), end, *safe(tokenizer, "\n")]
    return [*ids, start, *safe(tokenizer, "model\n")] if add_generation_prompt else ids


def encode_pair(tokenizer: Any, passage: str, question: str, answer: str) -> Pair:
    """Encode a question with its answer, for training: the ids of both parts.

    The answer's last id is the mark that ends its turn. Arguments are as for `encode_turns` and `turns`.
    """
    prompt = encode_turns(tokenizer, turns(passage, question), add_generation_prompt=True)
    return Pair(prompt, [*safe(tokenizer, answer.strip()), marks(tokenizer)[1]])


def safe(tokenizer: Any, text: str) -> list[int]:
    """Encode a text that anybody may have typed: none of its ids is special (exercise 3.2)."""
    return tokenizer(text, add_special_tokens=False, split_special_tokens=True).input_ids


def marks(tokenizer: Any) -> tuple[int, int]:
    """Return the ids of the two marks.

    Raises:
        ValueError: the tokenizer does not have them.
    """
    found = tuple(tokenizer.convert_tokens_to_ids([START, END]))
    if None in found or tokenizer.unk_token_id in found:
        raise ValueError(f"the tokenizer has no {START} and {END}: pass Gemma's")
    return found[0], found[1]
