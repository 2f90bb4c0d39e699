"""A scripted engine: speaks the wire like the worker, and misbehaves on request.

`python tests/app/engine_script.py SCENARIO [RATE]`: RATE is tokens a second, 0 means at once.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import queue
import random
import re
import sys
import threading
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from dfly_core.records.checked import Checked, Sizing
from dfly_core.records.commands import (
    Bench,
    Cancel,
    Close,
    Convert,
    Diagnose,
    Doctor,
    Generate,
    Load,
)
from dfly_core.records.events import (
    PROTOCOL,
    Benchmarked,
    Cancelled,
    Converted,
    Costed,
    Diagnosed,
    Event,
    Examined,
    Failed,
    Generated,
    Hello,
    Loaded,
    Progress,
    Rowed,
    Stepped,
)
from dfly_core.records.loaded import PairInfo, Verdict
from dfly_core.records.report import Report, Trial, Withheld, make_row
from dfly_core.records.stats import Stats
from dfly_core.records.step import Finish, Seconds, Step, Token
from dfly_core.records.wire import Envelope, decode, encode

STORY = (
    "The fox found a **lantern** by the river. It was small and warm.\n\n"
    "- first it looked\n- then it listened\n\n"
    "```python\ndef light(lamp):\n    return lamp.on()\n```\n\n"
    "And so it went home.\n"
)
CONTROLS = "safe \x1b]52;c;aGk=\x07 and \x1b[2J and \x9b31m end [/] [bold]x[/bold] \u202egnp\n"
MARKDOWN = (
    "```py\nx = 1\n```\n\nSee [a].\n\n[a]: http://x\n\n1. one\n2. two\n\n"
    "| a | b |\n|---|---|\n| 1 | 2 |\n"
)
GLYPHS = "漢字 e\u0301 👨‍👩‍👧 🇩🇪 हि\n"


def answer_for(name: str, asked: str) -> str:
    """What the scripted model says."""
    if name == "controls":
        return CONTROLS
    if name == "glyphs":
        return GLYPHS
    if name == "long":
        return mixed(4000)
    if name == "turns":
        return mixed(400)
    if name == "markdown":
        return MARKDOWN
    if name == "fences":
        return "```a|b\n[/] 1 = 2\n```\n\n```[/] 1\nx\n```\n"
    if name == "fifty":
        return " ".join(f"t{number}" for number in range(1, 51))
    return f"You said: {asked}\n\n{STORY}" if name == "echo" else STORY


OFF = {
    "parked": "parked: no width pays",
    "paysagain": "parked: no width pays",
    "neverpays": (
        "not expected to pay: a cycle costs 4.4 target steps, as measured at loading, and gives "
        "about 1.9 tokens with 89% of proposals right lately"
    ),
    "plain": "no drafter is loaded",
}


def mixed(tokens: int) -> str:
    """About that many tokens of prose, lists and code."""
    parts, count, number = [], 0, 0
    while count < tokens:
        number += 1
        part = (
            f"## Part {number}\n\nSome *plain* words about the matter, one after another, "
            "until the paragraph is long enough to wrap on any screen of this size.\n\n"
            "- a point\n- another `point`\n- a third\n\n"
            "```python\nfor i in range(10):\n    print(i)\n```\n\n"
        )
        parts.append(part)
        count += len(pieces(part))
    return "".join(parts)


def pieces(text: str) -> list[str]:
    """Text as tokens: words with their space; glyphs and fences one code point each."""
    if not text.isascii() or text == MARKDOWN:
        return list(text)
    return re.findall(r"\s?\S{1,8}|\s", text)


class Script:
    """The scripted worker."""

    def __init__(self, name: str, rate: float) -> None:
        self.name = name
        self.rate = rate
        self.inbox: queue.Queue[Envelope | None] = queue.Queue()
        self.cancelled: set[int] = set()

    def say(self, job: int, event: Event) -> None:
        sys.stdout.buffer.write(encode(job, event))
        sys.stdout.buffer.flush()

    def read(self) -> None:
        for line in sys.stdin.buffer:
            envelope = decode(line)
            if isinstance(envelope.body, Cancel):
                self.cancelled.add(envelope.body.target)
            elif isinstance(envelope.body, Close):
                break
            else:
                self.inbox.put(envelope)
        if self.name != "hang":
            os._exit(0)

    def run(self) -> None:
        threading.Thread(target=self.read, daemon=True).start()
        if self.name == "locks":
            # What a download with progress bars does; it fails in a process without a stderr.
            multiprocessing.get_context("spawn").Lock()
            sys.stderr.write(f"bar 50% on {sys.stderr.fileno()}\r")
        if self.name == "slowhello":
            time.sleep(2)
        if self.name == "noise":
            os.write(2, b"native noise \x1b[2J on descriptor two\n")
        self.say(0, Hello(PROTOCOL, "scripted"))
        while True:
            envelope = self.inbox.get()
            assert envelope is not None
            job, body = envelope.job, envelope.body
            if isinstance(body, Load):
                self.load(job, body)
            elif isinstance(body, Generate):
                self.generate(job, body)
            elif isinstance(body, Diagnose):
                self.diagnose(job, body)
            elif isinstance(body, Convert):
                self.convert(job, body)
            elif isinstance(body, Bench):
                self.bench(job, body)
            elif isinstance(body, Doctor):
                self.say(job, Examined({"sections": []}, True))

    def load(self, job: int, body: Load) -> None:
        sys.stderr.write(f"load:{body.model or 'embedded'}\n")
        sys.stderr.flush()
        if self.name == "misfit" and body.model:
            self.say(
                job,
                Failed(
                    "refused",
                    "the drafter has 36 target layers, the target 24",
                    "choose the drafter made for this target",
                ),
            )
            return
        if self.name == "noweights":
            self.say(
                job, Failed("missing", "no weights in /nowhere", "choose another folder with F6")
            )
            return
        self.say(job, Progress("load", "target", 1, 2, "files"))
        if self.name == "slowstart" or (self.name == "slowload" and body.model):
            self.say(job, Progress("self-test", "linear", 1, 9, "checks"))
            while job not in self.cancelled:
                time.sleep(0.005)
            self.name = "story"
            self.say(job, Cancelled())
            return
        draft = None if body.no_draft or self.name == "plain" else "tiny-drafter"
        pair = PairInfo(
            body.model or "embedded", body.draft or draft, body.model is None, 8, (1, 3, 5),
            2048, 4096, 6,
            "f32", None, None, 8_000_000, 3_000_000, 6144,
        )  # fmt: skip
        verdict = Verdict(
            "scripted machine", "embedded", body.verify, "native", (), 7,
            (0.01, 0.011, 0.012, 0.013, 0.014, 0.015, 0.016, 0.017), (), (0.004,) * 8,
            ("widths 2..8",), "every width was seen equal to single rows",
            cost_context=48, costs_at=time.time(),
        )  # fmt: skip
        self.say(job, Loaded(pair, verdict.without_costs()))
        self.say(0, Costed(verdict))

    def generate(self, job: int, body: Generate) -> None:
        if self.name == "hang":
            time.sleep(3600)
        if self.name == "abort" or (self.name == "locks" and body.messages[-1].content == "die"):
            os.abort()
        if self.name == "toolong":
            self.say(
                job,
                Failed(
                    "too-long",
                    "the prompt has 3000 tokens, the context 2048",
                    "shorten it or start a new chat",
                ),
            )
            return
        text = answer_for(self.name, body.messages[-1].content)
        if self.name == "told":
            text = json.dumps([[m.role, m.content] for m in body.messages])
        if self.name == "drift" and body.options.width == 0:
            text = text.replace("warm", "cold")
        stats, tokens = Stats(prompt_tokens=20), pieces(text)
        rng, at, index = random.Random(7), 0, 0
        position = 20
        limit = body.options.max_tokens
        began = time.monotonic()
        if self.name == "reading":
            self.say(job, Progress("prompt", "", 512, 4096, "tokens"))
        if self.name in ("slowfirst", "reading"):
            self.wait_for_cancel(job)
        self.say(job, Progress("prompt", "", 19, 19, "tokens"))
        while True:
            finish: Finish
            if job in self.cancelled:
                finish = "cancelled"
                break
            if self.name == "aborthalf" and at > 12:
                os.abort()
            if at >= min(len(tokens), limit):
                finish = "stop" if at >= len(tokens) else "length"
                break
            alone = body.options.width == 0 or self.name in ("plain", "fifty")
            width = 0 if index == 0 or alone else 7
            if (self.name == "parked" and index > 2) or self.name == "neverpays":
                width = 0
            if self.name == "paysagain" and 0 < index < 3:
                width = 0
            step = self.step(tokens[:limit], at, index, position, width, rng)
            stats = stats.add(step)
            self.say(job, Stepped(step))
            at += step.kept
            position += step.kept
            index += 1
            if self.name in ("halfway", "fifty") and index == 5:
                self.wait_for_cancel(job)
            if self.rate:
                time.sleep(max(0.0, began + at / self.rate - time.monotonic()))
        self.say(job, Generated(stats, finish, position, 50_000_000))
        sys.stderr.write(f"generated {time.monotonic()}\n")
        sys.stderr.flush()

    def diagnose(self, job: int, body: Diagnose) -> None:
        cold, warm = pieces(STORY.replace("warm", "cold")), pieces(STORY)
        at = len(body.ids)
        # Only the place where "drift" parts is a near tie: asked elsewhere the gap is another.
        agreed = [hash_of(piece) for piece in cold[:at]] == list(body.ids)
        low = 7.2479 if agreed and cold[at] != warm[at] else 1.0
        best = (Token(hash_of(cold[at]), cold[at]), Token(hash_of(warm[at]), warm[at]))
        self.say(job, Diagnosed(best, (7.25, low)))

    def wait_for_cancel(self, job: int) -> None:
        """Stand still, as in a picture, until the job is cancelled."""
        while job not in self.cancelled:
            time.sleep(0.005)

    def step(
        self, tokens: list[str], at: int, index: int, position: int, width: int, rng: random.Random
    ) -> Step:
        room = len(tokens) - at
        accepted = min(rng.choice([7, 7, 6, 5, 4, 2, 0, 7]) if width else 0, room - 1)
        kept = accepted + 1
        chosen = tuple(Token(hash_of(p), p) for p in tokens[at : at + kept])
        wrong = (Token(1, " no"),) * 7
        off = OFF.get(self.name) if not width and index else None
        if width and accepted < 5:
            width = min(width, 5 + index % 3)
        proposals = (chosen[:accepted] + wrong)[:width]
        seconds = 0.3 if index == 0 else 0.02 if width else 0.01
        return Step(
            index, position, Token(5, "x"), proposals, accepted,
            chosen, kept, tuple(t.piece for t in chosen), None, off,
            Seconds(seconds, 0.004, 0.015, 0.001) if width else Seconds(seconds),
        )  # fmt: skip

    def check(self, job: int, body: Convert) -> None:
        self.say(job, Progress("download", "config.json", 1, 1, "files"))
        if self.name == "nonet":
            self.say(
                job,
                Checked(
                    body.source or "official", None, None, None, "", None, 0, 5 * 10**11, (), "",
                    (), (), ("x/y could not be fetched from the hub: check the network",),
                ),
            )  # fmt: skip
            return
        if self.name == "slowcheck":
            while job not in self.cancelled:
                time.sleep(0.005)
            self.say(job, Cancelled())
            return
        sizes = (Sizing(None, 2_264_000_000, 0.79, 2.7, 41.0), Sizing(8, 1_203_000_000, 0.44, 3.3))
        rests_on = Path(body.target).name if body.target else str(len(body.targets))
        bad = ("the output exists: choose another, or replace it with --force",)
        self.say(
            job,
            Checked(
                body.source or "official", "serving folder", "x/y", "5712926", "5 draft layers",
                2_577_000_000, 0 if body.source else 2_577_000_000, 5 * 10**11,
                (*sizes, Sizing(4, 637_000_000)), f"speed: from {rests_on}",
                ("dropped, the target has its own: embed_tokens.weight",), ("values",),
                bad if str(body.output).endswith("taken") else (),
            ),
        )  # fmt: skip

    def convert(self, job: int, body: Convert) -> None:
        if body.check:
            self.check(job, body)
            return
        if self.name == "nonet":
            what = "x/y could not be fetched from the hub"
            self.say(job, Failed("unavailable", what, "check the network"))
            return
        if self.name == "misfit":
            self.say(
                job,
                Failed(
                    "refused",
                    "target_num_hidden_layers is 80, Qwen3-8B has 36",
                    "use revision 5712926",
                ),
            )
            return
        if body.output and self.name == "converts":
            # What a drafter's folder is known by, as far as the app reads it.
            Path(body.output).mkdir(parents=True)
            config = json.loads((Path(body.source or "") / "config.json").read_text())
            (Path(body.output) / "config.json").write_text(json.dumps(config))
            (Path(body.output) / "model.safetensors").write_bytes(b"x")
        total = 2_000_000_000
        for done in range(0, 21):
            if job in self.cancelled:
                self.say(job, Cancelled())
                return
            self.say(
                job,
                Progress(
                    "read" if done < 8 else "write",
                    f"layers.{done}.weight",
                    done * total // 20,
                    total,
                    "bytes",
                    4e8,
                ),
            )
            if self.name == "halfway" and done == 12:
                self.wait_for_cancel(job)
            time.sleep(1 / self.rate if self.rate else 0)
        self.say(
            job,
            Converted(
                {
                    "output": body.output,
                    "output_bytes": 1_200_000_000,
                    "tensors": 64,
                    "layout": "serving folder",
                    "notes": ["embed_tokens dropped: the target's own is used"],
                }
            ),
        )

    def bench(self, job: int, body: Bench) -> None:
        if body.model == "nowhere":
            self.say(job, Failed("missing", "no folder nowhere", "name a model folder"))
            return
        rows, kept = 0, list[dict[str, Any]]()
        for number in range(4):
            self.say(job, Progress("bench", f"code-{number} [/]", number * 3, 12, "trials", 0.5))
            if self.name == "slowrow" or (self.name == "halfway" and number == 2):
                self.wait_for_cancel(job)
            if job in self.cancelled:
                break
            row = bench_row(number, body.trials)
            self.say(job, Rowed(row))
            kept.append(row)
            rows += 1
            time.sleep(1 / self.rate if self.rate else 0)
        hardware = {"chip": "scripted", "memory_gb": 16, "os": "x", "python": "3", "mlx": "1"}
        hardware["mlx_lm"] = "1"
        report = Report(
            body.model or "embedded", body.draft or "embedded", body.trials, body.max_tokens,
            hardware, {}, {},
            {"words": "exactly", "mode": body.verify}, {}, {}, "now", results=tuple(kept),
        )  # fmt: skip
        path = body.output or "benchmark.json"
        if kept:
            Path(path).write_text(json.dumps(asdict(report)))
        self.say(job, Benchmarked(path if kept else None, rows, 0, 4 - rows))


def bench_row(number: int, trials: int = 3) -> dict[str, Any]:
    """A row of the report; number 2 is withheld."""
    plain = Trial(128, True, 50.0 + number, 0.1, 0.1, 10**8)
    fast = Trial(128, number != 2, 110.0 + number, 0.1, 0.1, 10**8, 5.5, 0.8, 20, 0)
    why = None
    if number == 2:
        why = Withheld(1, 31, 5, 6, "a", "b", (1.0, 0.9979), 0.0021, 7, 3, "native", "differs")
    return asdict(make_row(f"code-{number} [/]", "code", [plain] * trials, [fast] * trials, why))


def hash_of(piece: str) -> int:
    """A stable id for a piece."""
    return sum(ord(c) * (i + 7) for i, c in enumerate(piece)) % 4000 + 100


if __name__ == "__main__":
    Script(
        sys.argv[1] if len(sys.argv) > 1 else "story",
        float(sys.argv[2]) if len(sys.argv) > 2 else 0,
    ).run()
