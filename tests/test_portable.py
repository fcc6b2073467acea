"""What runs on Linux and not on Windows: text without an encoding, which there is not UTF-8."""

import ast
from pathlib import Path

import nbformat
import pytest

from paths import ROOT, notebooks

FOLDERS = ("benchmarks", "chapters_src", "tools")
FILES = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))] + notebooks()
BYTES = {"os", "urllib.request", "tarfile", "zipfile", "tokenize"}  # their `open` takes none
PROCESSES = {"run", "Popen", "check_output"}


def without_encoding(source: str) -> list[int]:
    """The lines that read or write text, of a file or of another process, and do not say how it is encoded.

    Args:
        source: of a module.

    Returns:
        Line numbers, from 1.
    """
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or any(word.arg == "encoding" for word in node.keywords):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        owner = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        constants = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
        words = {word.arg: ast.unparse(word.value) for word in node.keywords}
        if (
            (name == "read_text" and not node.args)
            or (name == "write_text" and len(node.args) < 2)
            or (name == "open" and owner not in BYTES and not is_binary([*constants, words.get("mode")]))
            or (name in PROCESSES and "True" in (words.get("text"), words.get("universal_newlines")))
        ):
            found.append(node.lineno)
    return found


def is_binary(mode: list) -> bool:
    return any(isinstance(value, str) and set(value) <= set("rwxab+'\"") and "b" in value for value in mode)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_text_has_an_encoding(path: Path):
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        source = "\n".join(
            cell.source for cell in nbformat.reads(source, 4).cells if cell.cell_type == "code"
        )
    lines = source.splitlines()
    assert [lines[number - 1] for number in without_encoding(source)] == []


def test_the_check_finds_what_it_names():
    wrong = (
        "path.read_text()",
        "path.write_text('text')",
        "open(path)",
        "open(path, 'w')",
        "path.open()",
        "path.open(mode='a')",
        "subprocess.run(command, text=True)",
        "run(command, universal_newlines=True)",
    )
    right = (
        "path.read_text('utf-8')",
        "path.read_text(encoding='utf-8')",
        "path.write_text('text', 'utf-8')",
        "open(path, 'rb')",
        "path.open('wb')",
        "path.open(mode='ab')",
        "os.open(path, flags)",
        "subprocess.run(command)",
        "subprocess.run(command, text=True, encoding='utf-8')",
    )
    assert without_encoding("\n".join(wrong)) == list(range(1, len(wrong) + 1))
    assert without_encoding("\n".join(right)) == []
