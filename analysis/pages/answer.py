"""The study's answer in two sentences, computed from its runs."""

from analysis.claims.finding import RELEVANT
from analysis.claims.verdicts import is_crowded
from analysis.data import outcomes, statistics
from analysis.data.capacity import limit_of
from analysis.data.inference import alike, chance, holm
from analysis.data.outcomes import control_of, split_by_learning
from analysis.data.study import Schedule, Study
from analysis.figures import hours, saturation, score_axes
from analysis.figures.main import main_figure, of_all
from analysis.figures.sentences import how_many_learned, sentence
from analysis.words import listed, number, with_interval

_NONE = "none learned"
_FAR = 2.0  # times as old: what counts as a difference in staleness


def answer(study: Study) -> str:
    """Return two sentences: what one learner can bear, and why; a third says what other settings did, if there are."""
    if not len(study.done):
        return "There is no answer yet: no run of this study is finished. What is missing stands below."
    if hours.is_the_answer(study):
        return main_figure(study).says(study)
    if main_figure(study).whole:
        return f"{_of_settings(study)} {_separation(study) or main_figure(study).says(study)}"
    part = study.shown
    others = _of_others(study)
    fixed = part.schedules(dynamic=False)
    if not fixed:
        where = f"With {study.shown_variant}: " if others else ""
        return f"{where}{of_all(part)} {score_axes.sentence(part)}{others}"
    learned, failed = split_by_learning(part, fixed)
    where = f"With {study.shown_variant}," if others else "Here"
    return f"{_what(part, learned, failed, where)} {_why(part, learned, failed)}{others}"


def _of_others(study: Study) -> str:
    """Say which worker counts learned with the settings that the answer is not about; "" if there are none."""
    if not study.shown_variant:
        return ""
    said: dict[str, list[str]] = {}
    ours = _fate(study.shown)
    for variant in study.done_variants:
        fate = _fate(study.of_variant(variant))
        same = fate == ours and fate != _NONE
        if variant != study.shown_variant:
            said.setdefault("the same learned" if same else fate, []).append(variant)
    parts = [f"with {listed(variants)}, {fate}{_up_to(study, variants)}" for fate, variants in said.items()]
    return f" {sentence('; '.join(parts))}"


def _fate(part: Study) -> str:
    """Say which worker counts learned, in the same words for the same ones."""
    learned, failed = ([s.label for s in side] for side in split_by_learning(part, part.schedules()))
    if not learned:
        return _NONE
    return f"{listed(learned)} workers learned" + (f" and {listed(failed)} did not" if failed else "")


def _up_to(study: Study, variants: list[str]) -> str:
    parts = [study.of_variant(variant) for variant in variants]
    best = max(outcomes.estimate(part, s).value for part in parts for s in part.schedules())
    return f" (up to {number(best)} {study.score.unit} an episode)" if best >= study.score.learned_above else ""


def _what(study: Study, learned: list[Schedule], failed: list[Schedule], where: str) -> str:
    if not learned:
        counts = listed([s.label for s in failed], "or")
        none = "None" if where == "Here" else f"{where} none"
        if any(outcomes.learned(study, s).any() for s in failed):
            return f"{none} of the worker counts tried ({counts}) learned in most of its runs."
        ends = listed(with_interval(outcomes.shown_estimate(study, s)) for s in failed)
        after = f"after {study.length} the mean is {ends}"
        return f"{none} of the worker counts tried ({counts}) {_too_little(study)}: {after}."
    reached = _ends(study, learned)
    if not failed and len(learned) == 1:
        return f"{where} {reached}."
    if not failed:
        tried = f"from {learned[0].end} to {learned[-1].end} workers"
        return f"{where} one learner bears all that was tried, {tried}: {reached}."
    fine, lost = (listed(s.label for s in side) for side in (learned, failed))
    bears = f"{learned[-1].end} workers but not {failed[0].end}"
    if failed[0].end < learned[-1].end:
        bears = f"{fine} workers, not {lost}"
    fate = f"with {lost} workers {how_many_learned(study, failed)} learned"
    return f"{where} one learner bears {bears}: {reached}, while {fate}."


def _too_little(study: Study) -> str:
    return f"reached {study.score.amount(study.score.learned_above)} an episode, the least that counts as learned"


def _ends(study: Study, learned: list[Schedule]) -> str:
    """Say where the runs that learned end, how many that is, and whether worker counts can be told apart."""
    scores = listed(with_interval(outcomes.shown_estimate(study, s)) for s in learned)
    verb = "end at" if len(learned) == 1 else f"{_apart(study, learned)}, at"
    ends = f"{listed(s.label for s in learned)} workers {verb} {scores} {study.score.unit} an episode"
    return f"{ends} in the {how_many_learned(study, learned)} that learned"


def _apart(study: Study, learned: list[Schedule]) -> str:
    """Compare worker counts with the fewest: alike only if a relevant difference is excluded (Schuirmann 1987)."""
    world, fewest = outcomes.one_world(study), learned[0]
    pairs = [world.paired(other, fewest, "final_score") for other in learned[1:]]
    if min(len(ours) for ours, _ in pairs) < 2:
        return "can't be told apart by one run each"
    margin = RELEVANT * abs(outcomes.estimate(study, fewest).value)
    differences = [statistics.paired_difference(*pair) for pair in pairs]
    if all(alike(difference, margin) for difference in differences):
        return "end alike"
    return "end apart" if any(holm([chance(d, 0.0) for d in differences])) else "can't be told apart"


def _why(study: Study, learned: list[Schedule], failed: list[Schedule]) -> str:
    limit = limit_of(study)
    if limit is None:
        return saturation.sentence(study)
    if not failed:
        return f"Before the runs, {limit.costs}, so {limit.words}.{_dynamic(study)}"
    if not learned and not any(study.values(s, "collapsed").astype(bool).any() for s in failed):
        ages = listed(number(study.estimate(s, "staleness_mean").value) for s in failed)
        late = f"No queue outgrew its master, and gradients come {ages} updates late"
        return f"{late}: the runs may just be too short to learn ({limit.costs}, so {limit.words})."
    agrees = (not learned or learned[-1].end < limit.high) and failed[0].end >= limit.low
    if not agrees:
        words = f"The master's capacity does not explain it: {limit.costs}, so {limit.words}"
        return f"{words}, which is not where learning ends.{_dynamic(study)}"
    worst = failed[-1]
    stale = number(study.estimate(worst, "staleness_mean").value)
    return (
        f"The cause is arithmetic: {limit.costs}, so {limit.words}; with more the queue only grows, and gradients come "
        f"{stale} updates late (mean with {worst.title}){_dynamic(study, '; ')}"
    )


def _dynamic(study: Study, joint: str = " ") -> str:
    """Say what the dynamic schedule that grows furthest, if it learns, gains, as a clause that ends the sentence."""
    nothing = "." if joint != " " else ""
    growing = [s for s in study.schedules(dynamic=True) if control_of(study, s)]
    furthest = max(growing, key=lambda s: s.end, default=None)
    if furthest is None or not split_by_learning(study, [furthest])[0] or is_crowded(study, furthest):
        return nothing
    control = control_of(study, furthest)
    assert control is not None
    pair = outcomes.one_world(study).paired(furthest, control, "steps_per_s")
    if not len(pair[0]):
        return nothing
    gain = statistics.paired_ratio(*pair)
    reached = round(study.estimate(furthest, "workers_max").value)
    words = f"growing from {furthest.start} to {reached} as episodes get longer ({furthest.span}) gives "
    words += f"{with_interval(gain)} times the steps per second of {control.title}."
    return joint + (words if joint != " " else words[0].upper() + words[1:])


def _of_settings(study: Study) -> str:
    """Say which settings learn."""
    names: dict[bool, list[str]] = {True: [], False: []}
    for variant in dict.fromkeys(study.done["variant"]):
        part = study.of_variant(variant)
        for schedule in part.schedules():
            learns = bool(outcomes.learned(part, schedule).mean() > 0.5)
            names[learns].append(variant if study.compares_settings else f"{schedule.title} with {variant}")
    everything = len(names[True]) + len(names[False])
    if not names[False]:
        return f"All of the {everything} combinations tried learned."
    if not names[True]:
        return f"None of the {everything} combinations tried {_too_little(study)}."
    if everything > 10 or not study.compares_settings:
        return f"{len(names[True])} of the {everything} combinations tried learned, {len(names[False])} did not."
    return f"Of what was tried, {listed(names[True])} learned; {listed(names[False])} did not."


def _separation(study: Study) -> str:
    """Say whether staleness alone tells the settings that learned from the others."""
    if not study.compares_settings:
        return ""
    shown = study.shown
    learned, failed = split_by_learning(shown, shown.schedules())
    ages = {s: shown.estimate(s, "staleness_mean").value for s in (*learned, *failed)}
    if not learned or not failed or min(ages[s] for s in failed) < _FAR * max(ages[s] for s in learned):
        return ""
    most, least = number(max(ages[s] for s in learned)), number(min(ages[s] for s in failed))
    return f"Staleness tells them apart: at most {most} updates (mean) in those that learned, at least {least} else."
