"""A/B, models, settings, the wizard and the benchmark tab, driven by keys over a script."""

from __future__ import annotations

import json
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from textual.widgets import Input, Select

from dfly_core.records.commands import Load
from dfly_core.records.events import Progress
from dfly_core.records.step import Seconds, Step, Token
from dfly_tui.screens.bench import BenchScreen
from dfly_tui.screens.convert import ConvertScreen
from dfly_tui.screens.models import ModelsScreen
from dfly_tui.screens.race import RaceScreen
from dfly_tui.screens.replay import page
from dfly_tui.screens.settings import SettingsScreen, parse
from dfly_tui.state.checking import first_run_words
from dfly_tui.state.models import Found, find_models, misfit, model_roots, read_model, too_large
from dfly_tui.state.panel import compare
from dfly_tui.state.progress import duration, words
from dfly_tui.state.reports import (
    HEADS,
    bar,
    categories,
    cells,
    columns,
    compared,
    diagnosis,
    summary,
)
from dfly_tui.widgets.step_strip import row
from tests.app.app_driving import Opener
from tests.app.engine_script import bench_row


@pytest.mark.parametrize(
    ("scenario", "verdict", "badge"),
    [
        ("story", "= The same 44 tokens", "Parity: matches 44 tokens"),
        ("drift", "and ' warm.' (7.2479), lie 0.0021 apart.", "(gap 0.0021)"),
    ],
)
async def test_a_race_runs_both_decoders_and_sets_the_parity_badge(
    open_app: Opener, scenario: str, verdict: str, badge: str
) -> None:
    async with open_app(scenario) as d:
        await d.ask("hello")
        await d.answered()
        assert "Parity: not checked" in d.shown
        await d.pilot.press("f5")
        await d.wait(lambda: isinstance(d.app.screen, RaceScreen))
        await d.sees(verdict)
        assert d.shown.count("tok/s · complete") == 2
        assert "temperature" not in d.shown
        assert "2." in d.shown  # the speed-up
        assert ("≠ First difference at token 13: ' warm.'" in d.shown) is (scenario == "drift")
        await d.pilot.press("escape")
        await d.sees(badge)


async def test_what_a_race_found_in_a_chat_opened_again_is_in_the_panel(
    open_app: Opener,
) -> None:
    async with open_app() as d:
        await d.ask("hello")
        await d.answered()
        await d.pilot.press("ctrl+n")
        d.app.open_chat(1)
        await d.sees("The live panel")
        await d.pilot.press("f5")
        await d.sees("= The same 44 tokens")
        await d.pilot.press("escape")
        await d.sees("Parity: matches 44 tokens")
        await d.sees("by A/B: 269 tok/s against")


async def test_of_a_sampled_answer_the_badge_says_not_applicable_also_after_a_race(
    open_app: Opener,
) -> None:
    async with open_app("drift") as d:
        d.app.settings.temperature = 0.8
        await d.ask("hello")
        await d.answered()
        await d.sees("Parity: not applicable: sampled")
        await d.pilot.press("f5")
        await d.sees("lie 0.0021 apart")
        assert "A/B on your last message at temperature 0" in d.shown
        await d.pilot.press("escape")
        await d.wait(lambda: d.app.screen is d.app.chat_screen)
        await d.sees("Parity: not applicable: sampled")


async def test_a_race_can_be_left_while_it_runs(open_app: Opener) -> None:
    async with open_app("long", rate=300) as d:
        d.app.settings.max_tokens = 5
        await d.ask("hello")
        await d.answered()
        d.app.settings.max_tokens = 100_000
        await d.pilot.press("f5")
        await d.wait(lambda: d.app.desk.busy == "A/B")
        await d.pilot.press("escape")
        await d.wait(lambda: not d.app.desk.busy)
        assert d.app.screen is d.app.chat_screen
        await d.ask("again")
        await d.wait(lambda: d.app.talk.answering)
        await d.pilot.press("escape")
        await d.answered(4)


async def test_the_speed_up_is_an_estimate_with_its_age_and_context_until_a_race_measured_it(
    open_app: Opener,
) -> None:
    async with open_app() as d:
        panel, begun = d.app.panel, time.time()
        await d.ask("hello")
        await d.answered()
        await d.sees("estimate 2.6x from costs")
        assert panel.gain.endswith("timed just now at 48 tokens; F5 measures it")
        for passed, words in (
            (150, "2 min ago"),
            (3 * 3600, "3 h ago"),
            (130 * 3600, "5 days ago"),
        ):
            panel.clock = partial(float, begun + passed)
            assert f"timed {words} at" in panel.gain
            # Also while nothing else changes; the line wraps behind the number.
            await d.sees(f"timed {words.split()[0]}")
        await d.pilot.press("f5")
        await d.sees("= The same 44 tokens")
        await d.pilot.press("escape")
        await d.sees("2.69x by A/B: 269 tok/s against 100")
        assert "estimate" not in d.shown


@pytest.mark.parametrize("size", [(120, 40), (60, 20)])
async def test_a_race_in_which_nothing_was_drafted_says_so_and_why_and_tells_no_speed_up(
    open_app: Opener, size: tuple[int, int]
) -> None:
    async with open_app("neverpays", size=size) as d:
        await d.ask("hello")
        await d.answered()
        await d.pilot.press("f5")
        await d.sees("= The same 44 tokens. Nothing was drafted")
        left = (row[: size[0] // 2 - 1] for row in d.shown.split("\n"))
        flat = " ".join(" ".join(left).split())
        assert "With the drafter: drafting off" in flat
        assert "Drafting off in all steps: not" in flat
        assert "1.00x" not in flat
        await d.pilot.press("escape")
        await d.wait(lambda: d.app.screen is d.app.chat_screen)
        assert d.app.panel.raced is None
        assert d.app.panel.parity.state == "matches"


async def test_a_race_that_drafted_in_some_steps_only_says_in_how_many_it_did_not(
    open_app: Opener,
) -> None:
    async with open_app("parked") as d:
        await d.ask("hello")
        await d.answered()
        await d.pilot.press("f5")
        await d.sees("= The same 44 tokens. 1.16x")
        assert "With the drafter:" not in d.shown
        await d.sees("Drafting off in 33 of 35 steps: parked: no")


def test_tokens_are_compared_one_by_one() -> None:
    a, b, c = Token(1, "a"), Token(2, "b"), Token(3, "c")
    assert compare([a, b], [a, b]).parted is False
    assert (compare([a, b], [a, c]).same, compare([a, b], [a, c]).right) == (1, c)
    assert (compare([a], [a, b]).same, compare([a], [a, b]).left) == (1, None)


def model(folder: Path, **config: Any) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(b"x" * 1000)
    return folder


TARGET: dict[str, Any] = {"hidden_size": 64, "vocab_size": 100, "num_hidden_layers": 6}
DRAFTER: dict[str, Any] = {"hidden_size": 64, "vocab_size": 100, "num_hidden_layers": 2}
DRAFTER |= {"target_layer_ids": [1, 3], "target_num_hidden_layers": 6}


def test_models_are_found_where_they_lie_and_fit_or_do_not(tmp_path: Path) -> None:
    hub = tmp_path / ".cache/huggingface/hub/models--org--name/snapshots/abc"
    model(hub, **TARGET)
    model(tmp_path / ".lmstudio/models/maker/thing", **(TARGET | {"vocab_size": 7}))
    drafter = model(tmp_path / "data/models/draft []", **DRAFTER)
    (tmp_path / "data/models/broken").mkdir()
    (tmp_path / "data/models/broken/config.json").write_text("{")
    roots = [
        r for r in model_roots(tmp_path / "data", {"HOME": str(tmp_path)}) if r[0] != "embedded"
    ]
    found = find_models(roots)
    assert [(m.name, m.kind) for m in found] == [
        ("models/draft []", "drafter"), ("org/name", "target"), ("maker/thing", "target"),
    ]  # fmt: skip
    parts = [root.name for words, root in model_roots(tmp_path) if words == "embedded"]
    assert parts == ["target", "drafter"]
    ours = read_model(drafter)
    assert ours is not None
    assert misfit(found[1], ours) == ""
    assert misfit(found[2], ours) == "made for a vocabulary of 100, this target has 7"


def test_a_target_that_is_too_large_says_what_it_needs() -> None:
    sizes = {"num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128}
    config = TARGET | sizes | {"num_hidden_layers": 36}
    large = Found("large", Path(), "folder", "target", 10_000_000_000, config)
    told = too_large(large, 12_000_000_000)
    assert told.startswith("needs 10.5 GB + 147 MB per 1,000 tokens of context, even alone")
    assert too_large(large, 64_000_000_000) == too_large(large, None) == ""
    unclear = Found("odd", Path(), "folder", "target", 10_000_000_000, {"hidden_size": "?"})
    assert "10.5 GB" in too_large(unclear, 12_000_000_000)


async def test_fault_22_a_drafter_that_does_not_fit_says_why_and_the_rest_can_be_chosen(
    open_app: Opener, home: Path
) -> None:
    model(home / "data/models/target", **TARGET)
    model(home / "data/models/good", **DRAFTER)
    model(home / "data/models/bad", **(DRAFTER | {"target_num_hidden_layers": 80}))
    async with open_app() as d:
        await d.pilot.press("f6")
        await d.wait(lambda: isinstance(d.app.screen, ModelsScreen))
        await d.sees("models/target")
        names = [m.name for m in d.app.screen._targets]  # type: ignore[attr-defined]
        await d.pilot.press(*["down"] * (names.index("models/target") + 1))
        await d.sees("made for 80 layers, this target has 6")
        await d.pilot.press("enter", "enter")
        await d.wait(lambda: d.ready and d.app.panel.pair is not None)
        pair = d.app.panel.pair
        assert pair is not None
        assert (pair.model, pair.draft) == (
            str(home / "data/models/target"), str(home / "data/models/good"),
        )  # fmt: skip
        await d.sees("target + good")
    kept = json.loads((home / "data/settings.json").read_text())
    assert kept["draft"] == str(home / "data/models/good")


async def test_fault_22_a_pair_that_the_engine_refuses_is_a_visible_reason_and_the_old_one_stays(
    open_app: Opener,
) -> None:
    async with open_app("misfit") as d:
        d.app.load(Load("target", "drafter"))
        await d.sees("the drafter has 36 target layers")
        assert "Back to what you had: embedded pair" in d.app.chat_screen.notice.words
        await d.wait(lambda: d.ready)
        assert d.app.loaded == Load()
        assert "36 target layers" in d.app.chat_screen.notice.words
        await d.ask("hello")
        assert "fox" in await d.answered()


async def test_without_a_pair_nothing_is_sent_and_the_way_out_is_named(open_app: Opener) -> None:
    async with open_app("noweights", load=False) as d:
        await d.sees("no weights in /nowhere")
        await d.ask("hello")
        assert "choose one with F6" in d.app.chat_screen.notice.words
        assert not d.app.talk.chat.turns


async def test_esc_stops_a_load_and_the_pair_from_before_is_loaded_again(
    open_app: Opener,
) -> None:
    async with open_app("slowload") as d:
        await d.ask("hello")
        await d.answered()
        d.app.load(Load("target", "drafter"))
        await d.sees("self-test: linear")
        await d.sees("Stop")
        await d.ask("for the new one")
        assert len(d.app.talk.chat.turns) == 2
        await d.pilot.press("escape")
        await d.wait(lambda: d.ready)
        words = d.app.chat_screen.notice.words
        assert (
            words == "Loading was stopped. F6 loads it again. Back to what you had: embedded pair"
        )
        assert d.app.loaded == Load()
        # What waited for the other pair is not sent to this one.
        assert d.app.chat_screen.composer.draft == "for the new one"
        await d.pilot.press("enter")
        assert "fox" in await d.answered(4)


async def test_esc_stops_the_first_load_and_ctrl_r_tries_again(open_app: Opener) -> None:
    async with open_app("slowstart", load=False) as d:
        await d.sees("self-test: linear")
        await d.pilot.press("escape")
        await d.sees("Loading was stopped. ctrl+r loads it again, F6 chooses another pair")
        assert d.app.panel.pair is None
        await d.sees("no pair loaded")
        await d.pilot.press("ctrl+r")
        await d.wait(lambda: d.ready)
        assert not d.app.chat_screen.notice.words


async def test_esc_closes_what_is_open_before_it_stops_a_load(open_app: Opener) -> None:
    async with open_app("slowstart", load=False) as d:
        await d.sees("self-test: linear")
        d.app.chat_screen.trouble("Something is off")
        for key, words in (
            ("", "Something is off"),
            ("f1", "Begin another conversation"),
            ("ctrl+p", "Search"),
        ):
            if key:
                await d.pilot.press(key)
            await d.sees(words)
            await d.pilot.press("escape")
            await d.wait(lambda w=words: w not in d.shown)
            assert d.app.desk.busy == "load"
            assert d.app.pair_words != "stopping"
        await d.sees("Stop loading")
        await d.pilot.press("escape")
        await d.sees("Loading was stopped. ctrl+r loads it again")


async def test_an_engine_that_dies_of_a_pair_is_not_given_it_again(open_app: Opener) -> None:
    async with open_app("slowload") as d:
        d.app.load(Load("target", "drafter"))
        await d.sees("self-test: linear")
        d.app.desk.engine._child.process.kill()  # type: ignore[union-attr]
        await d.sees("SIGKILL")
        await d.pilot.press("ctrl+r")
        await d.wait(lambda: d.ready)
        assert d.app.panel.pair is not None
        assert d.app.panel.pair.embedded


async def test_settings_explain_themselves_and_are_kept(open_app: Opener, home: Path) -> None:
    async with open_app() as d:
        await d.pilot.press("f9")
        await d.wait(lambda: isinstance(d.app.screen, SettingsScreen))
        await d.sees("the answer is the target's own")
        for name, value in (
            ("top k", "0 (off)"),
            ("top p", "1.0 (off)"),
            ("width", "automatic"),
            ("seed", "new each time"),
            ("system prompt", "none"),
        ):
            assert f"{name:<18}{value} " in d.shown
        await d.pilot.press("down", "down", "down")
        await d.sees("The longest answer, in tokens")
        await d.pilot.press("enter", *["backspace"] * 4, *"77", "enter")
        await d.wait(lambda: d.app.settings.max_tokens == 77)
    assert json.loads((home / "data/settings.json").read_text())["max_tokens"] == 77
    assert parse("width", "") is None
    with pytest.raises(ValueError, match="from 0 to 2"):
        parse("temperature", "hot")


async def test_the_wizard_checks_converts_reports_and_the_result_can_be_used(
    open_app: Opener, home: Path
) -> None:
    source = model(home / "source", **DRAFTER)
    async with open_app() as d:
        await d.pilot.press("f7")
        await d.wait(lambda: isinstance(d.app.screen, ConvertScreen))
        d.app.screen.query_one("#source").value = str(source)  # type: ignore[attr-defined]
        await d.pilot.press("enter")
        await d.sees("serving folder of x/y")
        await d.pilot.press("ctrl+s")
        await d.sees("Converted to")
        await d.sees("embed_tokens dropped")
        await d.pilot.press("ctrl+y")
        await d.wait(lambda: d.app.screen is d.app.chat_screen and d.ready)
        pair = d.app.panel.pair
        assert pair is not None
        assert str(pair.draft).endswith("source-MLX")


async def test_the_wizard_stops_and_shows_refusals(open_app: Opener) -> None:
    async with open_app("story", rate=2) as d:
        await d.pilot.press("f7", "ctrl+s")
        await d.wait(lambda: d.app.desk.busy == "conversion")
        await d.sees("400 MB/s")
        await d.pilot.press("escape")
        await d.sees("Stopped: nothing was left behind.")
        d.app.screen.query_one("#source", Input).value = "another"
        await d.wait(lambda: "nothing was left behind" not in d.shown)
    async with open_app("misfit") as d:
        await d.pilot.press("f7", "ctrl+s")
        await d.sees("use revision 5712926")


async def test_the_check_page_is_the_engines_own_and_follows_what_is_chosen(
    open_app: Opener, home: Path
) -> None:
    model(home / "data/models/t", **TARGET)
    async with open_app() as d:
        await d.pilot.press("f7")
        await d.sees("Enter checks: layout, gates")
        assert "GB" not in d.shown.split("Source")[1]  # nothing is claimed before
        await d.pilot.press("enter")
        await d.sees("serving folder of x/y, revision 5712926: 2.58 GB of weights, 2.58 GB to down")
        for words in (
            "5 draft layers", "result 2.26 GB, 500 GB free", "embed_tokens.weight",
            "not looked at before converting: values",
            "as stored: 2.26 GB, about 2.7x (41 tok/s), a draft = 0.79 target steps",
            "8 bit: 1.20 GB", "4 bit: 637 MB, speed unknown",
            "speed: from 2",
        ):  # fmt: skip
            assert words in d.shown
        # Other weights: checked again, without a key.
        await d.pilot.press("tab", "tab", "down", "down", "enter")
        await d.sees("result 637 MB")
        await d.wait(lambda: not d.app.desk.busy)
        # Another output: what was found is void until it is checked.
        await d.pilot.press("tab", *"/taken")
        await d.sees("Enter checks: layout, gates")
        assert "4 bit: a quarter of the size" in d.shown
        await d.pilot.press("enter")
        await d.sees("can't convert: the output exists: choose another")
        assert "--force" not in d.shown


async def test_without_network_the_check_is_one_line_and_it_can_be_stopped(
    open_app: Opener,
) -> None:
    async with open_app("nonet") as d:
        await d.pilot.press("f7", "enter")
        await d.sees("can't convert: x/y could not be fetched from the hub: check the network")
        assert "4 bit: a quarter of the size" in d.shown
    async with open_app("slowcheck") as d:
        await d.pilot.press("f7", "enter")
        await d.wait(lambda: d.app.desk.busy == "check")
        await d.pilot.press("escape")
        await d.sees("Stopped: Enter checks")
        await d.pilot.press("escape")
        await d.wait(lambda: d.app.screen is d.app.chat_screen)


async def test_the_benchmark_runs_live_withholds_lists_and_exports(
    open_app: Opener, home: Path
) -> None:
    async with open_app() as d:
        await d.pilot.press("f8")
        await d.wait(lambda: isinstance(d.app.screen, BenchScreen))
        await d.pilot.press("ctrl+s")
        await d.sees("1 withheld. Report:")
        await d.sees("withheld: token 31, gap 0.0021")
        await d.sees("code-0 [/]")
        await d.sees("bench-1")
        await d.pilot.press("ctrl+e", "enter")
        await d.wait((home / "data/reports/bench-1.md").exists)
        page = (home / "data/reports/bench-1.md").read_text()
        assert "code-0 [/]" in page
        assert "withheld: differs" in page


async def test_the_benchmark_takes_the_pair_and_mode_chosen_and_leaves_the_chats_pair(
    open_app: Opener, home: Path
) -> None:
    for name, config in (("target", TARGET), ("good", DRAFTER), ("bad", DRAFTER)):
        changed = {"vocab_size": 7} if name == "bad" else {}
        model(home / f"data/models/{name}", **(config | changed))
    async with open_app() as d:
        await d.ask("hello")
        await d.answered()
        await d.pilot.press("f8")
        await d.wait(lambda: isinstance(d.app.screen, BenchScreen))
        await d.sees("embedded pair")
        pair, verify = (
            d.app.screen.query_one("#pair", Select),
            d.app.screen.query_one("#verify", Select),
        )
        listed = [str(prompt) for prompt, _ in pair._options]
        assert listed == ["embedded pair", "target + good"]  # none that does not fit, none twice
        assert (pair.value, verify.value) == (0, "exact")
        pair.focus()
        await d.pilot.press("enter", "down", "enter", "tab", "enter", "down", "enter")
        assert (pair.value, verify.value) == (1, "fast")
        await d.pilot.press("ctrl+s")
        await d.sees("1 withheld. Report:")
        report = json.loads((home / "data/reports/bench-1.json").read_text())
        folder = home / "data/models"
        assert (report["model"], report["draft"]) == (str(folder / "target"), str(folder / "good"))
        assert report["verify"]["mode"] == "fast"
        # The engine holds that pair now: the chat's own is loaded again, and answers.
        await d.wait(lambda: d.ready)
        assert d.app.loaded == Load()
        loads = [line for line in (home / "data/engine.log").read_text().split() if "load" in line]
        assert loads == ["load:embedded", "load:embedded"]
        await d.pilot.press("escape")
        await d.ask("again")
        assert "fox" in await d.answered(4)


async def test_a_benchmark_of_the_loaded_pair_loads_nothing_again(
    open_app: Opener, home: Path
) -> None:
    async with open_app() as d:
        await d.pilot.press("f8", "ctrl+s")
        await d.sees("1 withheld. Report:")
        await d.wait(lambda: d.ready)
        assert (home / "data/engine.log").read_text().split() == ["load:embedded"]


async def test_chat_and_benchmark_do_not_run_at_once_and_say_so(open_app: Opener) -> None:
    async with open_app("story", rate=1) as d:
        await d.pilot.press("f8", "ctrl+s")
        await d.wait(lambda: d.app.desk.busy == "benchmark")
        assert not d.app.say("hello")
        await d.sees("One thing at a time: the benchmark still runs")
        d.app.clear_notifications()
        await d.pilot.press("f5")
        await d.sees("works in the chat: Esc stops the benchmark, then goes back")
        await d.pilot.press("escape")
        await d.sees("3 not run")


def test_a_report_in_words() -> None:
    rows = [bench_row(0), bench_row(2)]
    assert summary(rows) == "2 rows · median speed-up 2.20x · 1 withheld"
    assert diagnosis(rows[1]) == "withheld: token 31, gap 0.0021"
    assert diagnosis(rows[0]) == ""
    assert [head.splitlines()[1:] for head in HEADS[1:3]] == [["tok/s"]] * 2
    assert [HEADS[n] for n in columns(60)] == ["prompt", "speed-up", HEADS[5], "parity"]
    assert compared(rows, [rows[0] | {"dfly_tps_median": 55.0}]) == {"code-0 [/]": 2.0}
    assert [len(bar(s)) for s in (0.0, 1.0, 9.0)] == [12, 12, 12]


def test_a_row_that_never_drafted_shows_no_speed_up() -> None:
    idle = bench_row(0) | {"mean_accepted_length_median": None, "acceptance_rate_median": None}
    shown = cells(idle)
    assert shown[3:6] == ["-", "", "did not draft"]
    assert summary([idle, bench_row(1)]) == "2 rows · median speed-up 2.18x · 1 did not draft"
    assert categories([idle, bench_row(1)])[0][3] == "2.18x"


@pytest.mark.parametrize(
    ("memory", "mac", "words"),
    [
        (16e9, True, "it fits"),
        (4e9, True, "it does not fit"),
        (64e9, False, "each token takes seconds"),
    ],
)
def test_only_a_mac_is_told_that_qwen3_8b_fits(memory: int, mac: bool, words: str) -> None:
    told = first_run_words(memory, mac)
    assert words in told
    assert mac or "fit" not in told


def test_progress_in_words() -> None:
    progress = Progress("write", "x", 500_000_000, 2_000_000_000, "bytes", 1e8)
    assert words(progress) == "500 MB of 2.00 GB · 100 MB/s · 15 s left"
    assert words(Progress("x", "", 3, 0, "tokens")) == "3 tokens"
    assert [duration(s) for s in (0.2, 75, 7300)] == ["1 s", "1 min 15 s", "2 h 1 min"]


def test_a_step_that_only_ends_a_stopped_answer_says_so() -> None:
    step = Step(9, 40, None, (), 0, (), 0, (), "cancelled", None, Seconds(0.0))
    assert row(step, 7, 40).plain == "   9 stopped"
    assert page(step)[0].plain == "The answer ended here, between two steps."
