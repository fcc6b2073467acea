"""Chapter 15's server, as the notebook defines it: what it does with requests that no page sends."""

import ast
import asyncio
import json

import fastapi
import nbformat
import pydantic
import pytest
from fastapi.concurrency import run_in_threadpool

from paths import notebooks


class Words:
    """A tokenizer: an id for each word, and two more."""

    def encode(self, text: str) -> "Words":
        self.ids = [0, *range(1, 1 + len(text.split())), 0]
        return self


def defined() -> dict[str, object]:
    """The server's functions and limits, with a classifier that counts."""
    known = {
        "__name__": "serve",
        "asyncio": asyncio,
        "FastAPI": fastapi.FastAPI,
        "HTTPException": fastapi.HTTPException,
        "Request": fastapi.Request,
        "ValidationError": pydantic.ValidationError,
        "create_model": pydantic.create_model,
        "run_in_threadpool": run_in_threadpool,
    }
    path = next(path for path in notebooks() if path.name.startswith("15_"))
    for cell in nbformat.read(path, 4).cells:
        for node in ast.parse(cell.source).body if cell.cell_type == "code" else ():
            limits = isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).strip("()").startswith(
                "BYTES"
            )
            if limits or getattr(node, "name", None) in ("read", "make_app"):
                exec(compile(ast.Module([node], []), path.name, "exec"), known)
    known["open_classifier"] = lambda folder: (Words(), lambda ids: [float(len(ids))])
    return known


@pytest.fixture
def server():
    return defined()


def ask(server: dict, parts: list[bytes], *, pause: float = 0.0) -> tuple[int, dict]:
    """Send a body in parts without saying how long it will be, with a pause before the last one."""
    left, sent = [*parts], []

    async def receive() -> dict:
        if len(left) == 1:
            await asyncio.sleep(pause)
        return {"type": "http.request", "body": left.pop(0), "more_body": bool(left)}

    async def send(message: dict) -> None:
        sent.append(message)

    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "scheme": "http",
        "method": "POST", "path": "/classify", "raw_path": b"/classify", "root_path": "",
        "query_string": b"", "headers": [], "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2),
    }  # fmt: skip
    asyncio.run(server["make_app"]("no folder")(scope, receive, send))
    body = b"".join(message.get("body", b"") for message in sent[1:])
    return sent[0]["status"], json.loads(body)


def message(text: str) -> bytes:
    return json.dumps({"text": text}).encode()


def test_a_body_may_come_in_parts(server):
    body = message("three short words")
    assert ask(server, [body[:9], body[9:11], body[11:]]) == (200, {"logits": [5.0]})


def test_the_limits_are_what_may_be_sent_and_no_more(server):
    tokens, size = server["TOKENS"] - 2, server["BYTES"]
    assert ask(server, [message("a " * tokens)])[0] == 200
    status, reply = ask(server, [message("a " * (tokens + 1))])
    assert status == 422 and str(tokens + 1) in reply["detail"]
    body = message("a" * (size - len(message(""))))
    assert len(body) == size and ask(server, [body])[0] == 200
    assert ask(server, [body + b" "])[0] == 413


def test_a_long_body_without_a_length_is_refused(server):
    status, reply = ask(server, [b"x" * 4_000] * 1_000)
    assert status == 413 and "4,000,000 bytes" in reply["detail"]


def test_who_sends_slowly_does_not_hold_a_place_for_ever(server):
    server["SECONDS"] = 0.05
    body = message("slow")
    status, reply = ask(server, [body[:5], body[5:]], pause=60.0)
    assert status == 408 and "0.05" in reply["detail"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[" * 5_000,
        b'{"text": null}',
        b'{"text": ["a"]}',
        b'{"text": "\\ud800"}',
        b'{"text": "\xff"}',
        message(""),
        message("\n"),
    ],
)
def test_what_is_no_message_gets_a_sentence(server, body):
    status, reply = ask(server, [body])
    assert status == 422 and reply["detail"]
