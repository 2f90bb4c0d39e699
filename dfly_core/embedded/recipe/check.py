"""Judges an answer without any model: numbers, words, stories, and code that is run."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?")
FENCE = re.compile(r"```(?:python)?\n(.*?)```", re.DOTALL)
RUN = """
import contextlib, io, json, sys
code, cases = json.load(sys.stdin)
space = {}
exec(code, space)
made = [v for k, v in space.items() if callable(v) and not k.startswith("__")]
for args, want in cases:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        got = made[-1](*args)
    got = json.loads(json.dumps(got))
    near = isinstance(got, float) and isinstance(want, (int, float)) and abs(got - want) < 1e-6
    if not (got == want or near or (out.getvalue() and out.getvalue() == want)):
        raise SystemExit(1)
"""


def runs(answer: str, cases: list[Any], seconds: float = 5.0) -> bool:
    """The answer's first code block defines a function that passes every case."""
    found = FENCE.search(answer)
    if not found:
        return False
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-c", RUN], input=json.dumps([found.group(1), cases]),
            capture_output=True, text=True, timeout=seconds, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def right(answer: str, check: dict[str, Any]) -> bool:
    """True if the answer passes the check of an evaluation prompt."""
    text = answer.lower()
    kind = check["kind"]
    if kind == "code":
        return runs(answer, check["cases"])
    if kind == "number":
        found = NUMBER.findall(answer)
        return bool(found) and float(found[-1]) == check["value"]
    words = [word.lower() in text for word in check["words"]]
    if kind == "any":
        return any(words)
    if kind == "story":
        return all(words) and len(re.findall(r"[.!?]", answer)) >= 4
    return all(words)
