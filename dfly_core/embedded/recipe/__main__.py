"""Makes the embedded pair: python -m dfly_core.embedded.recipe --work DIR [--out DIR].

Needs torch, tokenizers, safetensors and numpy (requirements.txt). About two hours on
two cores. Every stage keeps its result in --work, so that the same command goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import torch
from tokenizers import Tokenizer

from . import answers, cards, evaluate, export, text, train_drafter, train_target
from .drafter import Drafter
from .target import Target, TargetConfig


def tokenizer_of(work: Path) -> Tokenizer:
    """Trained once."""
    path = work / "tokenizer"
    if not (path / "tokenizer.json").exists():
        text.write_tokenizer(text.train_tokenizer(), path)
    return Tokenizer.from_file(str(path / "tokenizer.json"))


def target_of(work: Path, tokenizer: Tokenizer, minutes: float) -> Target:
    """Trained, rounded to bfloat16, and read back: the final target."""
    folder = work / "target"
    if not (folder / "model.safetensors").exists():
        export.write_target(train_target.train(tokenizer, work, minutes), tokenizer, folder)
    return export.read_target(folder, Target(TargetConfig(vocab_size=tokenizer.get_vocab_size())))


def samples_of(
    work: Path, target: Target, tokenizer: Tokenizer, count: int, minutes: float
) -> list[tuple[list[int], int]]:
    """The target's own greedy answers, made once."""
    path = work / "answers.json"
    if not path.exists():
        made = answers.in_two_processes(work / "target", tokenizer, count, minutes * 60)
        path.write_text(json.dumps(made))
    return [(ids, start) for ids, start in json.loads(path.read_text())]


def drafter_of(
    work: Path, target: Target, samples: list[tuple[list[int], int]], minutes: float, name: str
) -> Drafter:
    """'upstream' is the drafter, 'ablation' the one without correction."""
    folder = work / name
    if not (folder / "model.safetensors").exists():
        model = train_drafter.train(target, samples, work, minutes, name == "upstream")
        export.write_drafter(model, folder)
    return export.read_drafter(folder)


def main() -> None:
    """All stages, or one of the two drafters when called by itself."""
    parser = argparse.ArgumentParser(prog="dfly_core.embedded.recipe", description=__doc__)
    parser.add_argument("--work", type=Path, required=True, help="checkpoints; outside git")
    parser.add_argument("--out", type=Path, help="where target/ and drafter/ are written")
    parser.add_argument("--target-minutes", type=float, default=82)
    parser.add_argument("--answers", type=int, default=16000)
    parser.add_argument("--answer-minutes", type=float, default=9)
    parser.add_argument("--drafter-minutes", type=float, default=25)
    parser.add_argument("--threads", type=int, default=1, help="for the target; 2 on idle cores")
    parser.add_argument("--only", choices=["upstream", "ablation"], help=argparse.SUPPRESS)
    given = parser.parse_args()
    given.work.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(given.threads)
    begun = time.time()
    tokenizer = tokenizer_of(given.work)
    target = target_of(given.work, tokenizer, given.target_minutes)
    samples = samples_of(given.work, target, tokenizer, given.answers, given.answer_minutes)
    if given.only:
        drafter_of(given.work, target, samples, given.drafter_minutes, given.only)
        return
    # Two drafters at once, one core each: with the correction and without.
    jobs = []
    for name in ("upstream", "ablation"):
        log = (given.work / f"{name}.log").open("a")
        command = [sys.executable, "-m", __package__, *sys.argv[1:], "--only", name]
        jobs.append(subprocess.Popen(command, stdout=log, stderr=log))
    if any(job.wait() for job in jobs):
        raise SystemExit(f"a drafter failed: see upstream.log and ablation.log in {given.work}")
    with_head = export.read_drafter(given.work / "upstream")
    without = export.read_drafter(given.work / "ablation")
    figures = evaluate.evaluate(
        target, tokenizer, {"drafter": with_head, "without correction": without}, show=True
    )
    engine = given.work / "engine.json"
    if engine.exists():  # the output of tests.tools.ninety, from an environment with MLX
        figures["engine"] = json.loads(engine.read_text())
    export.write_json(given.work / "figures.json", figures)
    print(json.dumps(figures, indent=1))
    if given.out:
        export.write_target(target, tokenizer, given.out / "target")
        export.write_mlx(given.work / "upstream", given.out / "drafter")
        export.write_drafter(with_head, Path(__file__).with_name("upstream"))
        saved = torch.load(given.work / "target.pt", weights_only=True)
        facts = {
            "target_params": sum(p.numel() for p in target.parameters()),
            "drafter_params": sum(p.numel() for p in with_head.parameters()),
            "target_mb": (given.out / "target/model.safetensors").stat().st_size / 1e6,
            "drafter_mb": (given.out / "drafter/model.safetensors").stat().st_size / 1e6,
            "documents": saved["documents"],
            "tokens": saved["tokens"],
            "answers": len(samples),
            "target_minutes": given.target_minutes,
            "drafter_minutes": given.drafter_minutes,
        }
        cards.write(given.out, figures, facts)
    print(f"{(time.time() - begun) / 60:.0f} minutes")


if __name__ == "__main__":
    main()
