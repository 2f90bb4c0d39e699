"""The panel's figures: none contradicts another, and no draft goes without its reason."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dfly_core.records.events import Costed
from dfly_core.records.loaded import PairInfo, Verdict
from dfly_core.records.memory import need_of
from dfly_core.records.promise import short_words
from dfly_core.records.sizes import size_words
from dfly_core.records.stats import Stats
from dfly_core.records.step import Seconds, Step, Token
from dfly_tui.screens.help import FIGURES, example
from dfly_tui.screens.replay import page
from dfly_tui.state.panel import NO_REASON, PanelState, compare
from dfly_tui.widgets import figures
from dfly_tui.widgets.step_strip import glyphs, row
from tests.app.app_driving import Opener

PAIR = PairInfo(
    "t", "d", False, 8, (1,), 2048, 100, 6, "f32", None, None, 8_000_000, 3_000_000, 6144
)  # fmt: skip
VERDICT = Verdict(
    "m", "t", "exact", "native", (), 7, tuple(0.01 + w / 1000 for w in range(8)), (), (0.004,) * 8,
    (), "exact", cost_context=48, costs_at=0.0,
)  # fmt: skip
A = Token(1, "a")


def prompt_step() -> Step:
    return Step(0, 20, A, (), 0, (A,), 1, ("a",), None, None, Seconds(0.3))


def plain_step(index: int, seconds: float = 0.01, off: str | None = "parked") -> Step:
    return Step(index, 20 + index, A, (), 0, (A,), 1, ("a",), None, off, Seconds(seconds))


def cycle(index: int, accepted: int, seconds: Seconds) -> Step:
    chosen = (A,) * (accepted + 1)
    texts = ("a",) * (accepted + 1)
    return Step(index, 30, A, (A,) * 7, accepted, chosen, len(chosen), texts, None, None, seconds)


def told(state: PanelState, width: int = 42) -> str:
    return figures.standing(state, width).plain


def answered(*steps: Step, clock: float = 150.0) -> PanelState:
    state = PanelState(PAIR, VERDICT, clock=lambda: clock)
    state.begin()
    for step in (prompt_step(), *steps):
        state.add(step)
    return state


def test_costs_come_after_the_pair_and_only_its_own_are_taken() -> None:
    state = PanelState(PAIR, VERDICT.without_costs(), clock=lambda: 150.0)
    state.begin()
    state.add(prompt_step())
    state.add(cycle(1, 3, Seconds(0.02)))
    assert state.plain is None
    assert state.break_even is None
    for other in (replace(VERDICT, model="u"), replace(VERDICT, mode="fast")):
        state.costed(Costed(other))
        assert state.plain is None
    state.costed(Costed(VERDICT))
    assert state.plain is not None
    assert state.plain.seconds == VERDICT.cost_exact[0]
    assert state.break_even is not None
    state.verdict = None  # another pair is being loaded
    state.costed(Costed(VERDICT))
    assert state.verdict is None


def test_rate_alone_bill_and_estimate_are_of_one_set_of_times() -> None:
    # A cycle takes 0.05 s, more than twice what loading measured, as where the app's own work
    # slows everything down: the target alone would be as much slower.
    timed = Seconds(0.05, 0.01, 0.03, 0.01)
    state = answered(cycle(1, 5, timed), cycle(2, 3, Seconds(0.05)))
    even, alone = state.break_even, state.ceiling
    assert even is not None
    rate = state.stats.tokens_per_second
    assert rate is not None
    assert alone is not None
    assert [alone, even.verify, even.needs, even.now] == pytest.approx([42, 1.7, 2.1, 5.0])
    assert rate / alone == pytest.approx(even.now / even.needs)
    assert even.pays
    assert "estimate 2.4x from costs timed 2 min ago at 48 tokens" in state.gain


def test_plain_steps_of_this_session_count_more_than_those_of_loading_and_say_their_age() -> None:
    now = [1000.0]
    state = PanelState(PAIR, VERDICT, clock=lambda: now[0])
    state.begin()
    for index in range(1, 8):
        state.add(plain_step(index, 0.02))
    assert state.ceiling == pytest.approx(100)  # too few to tell
    state.add(plain_step(8, 0.5))  # one with a probe in it does not count
    assert state.ceiling == pytest.approx(50)
    state.begin()
    state.add(cycle(1, 7, Seconds(0.04)))
    now[0] += 300
    assert state.gain.startswith("estimate 4.0x from plain steps timed 5 min ago at 28 tokens")
    even = state.break_even
    assert even is not None
    assert even.needs == pytest.approx(2.0)
    # Without a timed cycle, loading's share of the verification.
    assert even.verify == pytest.approx(2.0 * 0.017 / 0.021)
    state.pair = replace(PAIR, model="other")
    assert state.ceiling == pytest.approx(200 * 2.1 / 8)  # of another pair they say nothing


def test_where_drafting_goes_on_though_it_does_not_pay_the_panel_says_why() -> None:
    state = PanelState(PAIR, VERDICT, clock=lambda: 150.0)

    def told() -> str:
        return state.kept_on

    state.begin(fixed=True)
    for index in range(1, 8):
        state.add(cycle(index, 0, Seconds(0.05)))
    assert state.break_even is not None
    assert not state.break_even.pays
    assert not told()  # a few bad drafts say little yet
    state.add(cycle(8, 0, Seconds(0.05)))
    assert told() == "Does not pay here; goes on, as its width is set in F9"
    state.pair = replace(PAIR, embedded=True)
    assert "as the embedded pair always drafts" in figures.standing(state, 42).plain
    for index in range(9, 40):
        state.add(cycle(index, 7, Seconds(0.05)))
    assert not told()
    state.begin()
    for index in range(1, 10):
        state.add(cycle(index, 0, Seconds(0.05)))
    assert not told()  # the engine chooses, and will end it


def test_a_race_sets_the_rate_alone_and_where_nothing_was_drafted_no_speed_up() -> None:
    state = answered(cycle(1, 7, Seconds(0.04)))
    assert "~52 alone" in figures.headline(state).plain
    fast, slow = Stats().add(cycle(1, 7, Seconds(0.04))), Stats().add(plain_step(1, 0.0125))
    state.judge(compare([A], [A]), fast, slow)
    assert state.gain == "2.50x by A/B: 200 tok/s against 80 alone"
    assert state.ceiling == pytest.approx(80)
    assert " 80 alone" in figures.headline(state).plain
    state.judge(compare([A], [A]), slow, slow)
    assert state.raced is None
    assert "by A/B" not in state.gain


@pytest.mark.parametrize(
    "reason", ["a cycle costs 9.0 target steps here and gives at most 8 tokens", "", None]
)
def test_whatever_the_engine_says_no_state_without_drafts_lacks_off_and_why(
    reason: str | None,
) -> None:
    why = reason or NO_REASON
    state = answered(*(plain_step(index, off=reason) for index in range(1, 4)))
    assert f"Drafting off: {why}" in told(state)
    assert f"drafting off: {why}"[:40] in figures.one_line(state, 56).plain
    assert f"Drafting was off in this step: {why}" in page(state.steps[-1])[0].plain
    assert row(state.steps[-1], state.slots, 41).plain == "   3 ◆ off    1 a"
    # The prompt's own step is no step without a draft.
    assert "off" not in row(state.steps[0], state.slots, 41).plain


def test_what_lies_past_the_answers_end_is_marked_as_unused_in_strip_and_replay() -> None:
    whole = cycle(1, 4, Seconds(0.1))
    assert glyphs(whole) == "●●●●○○○◆"
    for kept, marks in ((2, "●●······"), (4, "●●●●····"), (0, "········")):
        cut = replace(whole, kept=kept, texts=("a",) * kept, finish="stop")
        assert glyphs(cut) == marks
        assert glyphs(cut).count("●") == kept  # the number behind the row
        rows = [line.plain for line in page(cut) if line.plain[1:3] == "  "]
        assert "".join(row[0] for row in rows if "“" in row) == marks[:7]
        assert [n for n, row in enumerate(rows) if "past the answer's end" in row] == [kept + 1]
    assert glyphs(replace(cycle(1, 7, Seconds(0.1)), kept=7)) == "●●●●●●●·"
    assert "· unused" in figures.legend().plain
    assert all(len(row) <= 42 for row in figures.legend().plain.split("\n"))


def test_the_panel_and_doctor_count_the_same_memory_and_say_what_it_is() -> None:
    state = answered(cycle(1, 7, Seconds(0.04)))
    need = need_of(PAIR)
    assert need.weights == 11_000_000
    assert f"Full context: {size_words(need.at(2048))} with the program" in told(state)
    state.pair = replace(PAIR, context_limit=figures.NO_LIMIT)
    assert "Full context" not in told(state)


def test_the_verdict_is_told_in_few_words_that_keep_its_meaning() -> None:
    state = answered(cycle(1, 7, Seconds(0.04)))
    assert "Verify exact: 7 tokens in one pass, same bits as one at a time" in told(state)
    fast = replace(VERDICT, mode="auto", taken="fast")
    for verdict, words in (
        (fast, "fast (auto): nearly tied tokens may differ from the target's own"),
        (
            replace(VERDICT, exact_width=0),
            "exact: one token at a time, no larger pass has the same",
        ),
        (replace(VERDICT, exact_width=0, words="withdrawn: why"), "withdrawn: why"),
    ):
        assert short_words(verdict).startswith(words)
        assert len(short_words(verdict)) <= 5 * 42 // 2 - len("Verify ")


def test_a_target_alone_says_that_no_drafter_is_loaded() -> None:
    state = answered(plain_step(1, off="no drafter is loaded"))
    state.pair = replace(PAIR, draft=None)
    assert "Drafting off: no drafter is loaded" in told(state)
    state.begin()
    assert "drafting off: no drafter is loaded" in figures.one_line(state, 56).plain


def test_while_drafting_is_off_its_reason_is_the_only_bill() -> None:
    reason = "a cycle costs 4.4 target steps and gives about 1.9 tokens with 89% right lately"
    state = answered(cycle(1, 1, Seconds(0.04)), *(plain_step(i, off=reason) for i in range(2, 5)))
    assert "1 verify" not in told(state)
    assert "estimate" not in told(state)
    assert figures.LATELY in told(state)
    state = answered(cycle(1, 1, Seconds(0.04)), plain_step(2, off="parked"))
    assert "1 verify" not in told(state)
    assert figures.LATELY not in told(state)


def test_drafting_that_was_off_for_a_while_is_told_after_it_came_back() -> None:
    state = answered(plain_step(1), plain_step(2), cycle(3, 7, Seconds(0.04)))
    assert state.why_off is None
    assert "Drafting was off in 2 of 3 steps: parked" in told(state)


def test_the_row_that_help_explains_gives_as_many_tokens_as_it_has_solid_marks() -> None:
    _, marks, count, *_ = example(80).plain.split()
    assert len(marks) == 8
    assert int(count) == marks.count("●") + marks.count("◆")


def test_help_explains_every_figure_of_the_panel() -> None:
    state = answered(cycle(1, 7, Seconds(0.04)))
    state.peak_memory = 15_000_000
    shown = f"{figures.headline(state).plain}\n{told(state)}"
    for name, _ in FIGURES:
        assert name.removesuffix(" N") in shown or name == "1 2 3 ..."


def test_the_memory_on_the_panel_says_what_it_is() -> None:
    state = answered(cycle(1, 3, Seconds(0.02)))
    state.peak_memory = 15_000_000
    assert "15.0 MB used" in figures.headline(state).plain


@pytest.mark.parametrize(
    ("size", "words"), [((120, 40), "Drafting off: not"), ((60, 20), "drafting off: not")]
)
async def test_drafting_that_is_off_from_the_first_step_is_on_screen_with_its_reason(
    open_app: Opener, size: tuple[int, int], words: str
) -> None:
    async with open_app("neverpays", size=size) as d:
        await d.ask("hello")
        await d.answered()
        await d.sees(words)
        await d.pilot.press("f3")
        await d.sees("Drafting was off in this step")


async def test_figures_start_afresh_when_an_answer_goes_on_and_say_what_they_are_of(
    open_app: Opener,
) -> None:
    async with open_app("halfway") as d:
        await d.ask("hello")
        await d.wait(lambda: len(d.app.panel.steps) == 5)
        await d.pilot.press("escape")
        await d.answered()
        await d.sees("stopped · 4.75 mean accepted length")
        d.app.panel.steps.clear()
        before = d.app.panel.stats
        await d.pilot.press("ctrl+l")
        await d.wait(lambda: len(d.app.panel.steps) == 5)
        await d.sees("This answer, since it went on")
        assert d.app.talk.answering
        assert "4.75 mean accepted length ·" not in d.shown  # the old foot
        assert d.app.panel.stats.emitted == before.emitted
        await d.pilot.press("escape")
        await d.answered()
        await d.sees("stopped · since it went on · 4.75")
