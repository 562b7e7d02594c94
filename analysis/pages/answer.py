"""The study's answer in two sentences, computed from its runs."""

import numpy as np

from analysis.data import statistics
from analysis.data.outcomes import control_of, split_by_learning
from analysis.data.study import Schedule, Study
from analysis.figures import saturation, score_axes
from analysis.figures.main import main_figure, of_all
from analysis.figures.sentences import sentence
from analysis.words import count, duration, listed, number

_NONE = "none learned"
_FAR = 2.0  # times as old: what counts as a difference in staleness


def answer(study: Study) -> str:
    """Return two sentences: what one learner can bear, and why; a third says what other settings did, if there are."""
    if not len(study.done):
        return "There is no answer yet: no run of this study is finished. What is missing stands below."
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
    best = max(part.estimate(s, "final_score").value for part in parts for s in part.schedules())
    return f" (up to {number(best)} {study.score.unit} an episode)" if best >= study.score.learned_above else ""


def _what(study: Study, learned: list[Schedule], failed: list[Schedule], where: str) -> str:
    if not learned:
        counts = listed([s.label for s in failed], "or")
        none = "None" if where == "Here" else f"{where} none"
        return f"{none} of the worker counts tried ({counts}) learned anything in {study.episodes:,} episodes."
    reached = _best(study, learned)
    if not failed:
        tried = f"from {learned[0].end} to {learned[-1].end} workers"
        return f"{where} one learner bears all that was tried, {tried}: {reached}."
    runs = sum(len(study.values(s, "collapsed")) for s in failed)
    collapsed = int(sum(study.values(s, "collapsed").astype(bool).sum() for s in failed))
    share = "all" if collapsed == runs else f"{collapsed} of"
    fine, lost = (listed(s.label for s in side) for side in (learned, failed))
    fate = f"{share} {count(runs, 'run')} with {lost} collapsed" if collapsed else f"{lost} learned nothing"
    bears = f"{learned[-1].end} workers but not {failed[0].end}"
    if failed[0].end < learned[-1].end:
        bears = f"{fine} workers, not {lost}"
    return f"{where} one learner bears {bears}: {reached}, while {fate}."


def _best(study: Study, learned: list[Schedule]) -> str:
    """Name the best schedule, together with those that its runs can't be told apart from."""
    ends = {s: study.estimate(s, "final_score") for s in learned}
    best = max(learned, key=lambda s: ends[s].value)
    alike = [s for s in learned if s == best or not _is_better(study, best, s)]
    scores = listed(number(ends[s].value) for s in alike)
    verb = "do best" if len(alike) == 1 else "end alike"
    if len(alike) > 1 and min(len(study.values(s, "final_score")) for s in alike) < 2:
        verb = "can't be told apart by one run each"
    return f"{listed(s.label for s in alike)} workers {verb} ({scores} {study.score.unit} an episode)"


def _is_better(study: Study, ours: Schedule, theirs: Schedule) -> bool:
    pair = study.paired(ours, theirs, "final_score")
    return bool(len(pair[0])) and statistics.paired_difference(*pair).low > 0


def _why(study: Study, learned: list[Schedule], failed: list[Schedule]) -> str:
    done = study.done
    limit = float(done["saturation_start"].median()) if "saturation_start" in done else float("nan")
    if not np.isfinite(limit):
        return saturation.sentence(study)
    cycle, service = duration(float(done["cycle_s_start"].median())), duration(float(done["service_s"].median()))
    cost = (
        f"{limit:.1f} workers keep the master busy at the start, as an episode takes {cycle} and its gradient {service}"
    )
    if not failed:
        return f"By arithmetic {cost}.{_dynamic(study)}"
    if not learned and not any(study.values(s, "collapsed").astype(bool).any() for s in failed):
        return "No queue outgrew its master either: the runs may just be too short to learn."
    agrees = (not learned or learned[-1].end < limit) and failed[0].end >= limit - 1
    if not agrees:
        return f"The master's capacity does not explain it: {cost}, which is not where learning ends.{_dynamic(study)}"
    worst = failed[-1]
    stale = number(study.estimate(worst, "staleness_mean").value)
    return (
        f"The cause is arithmetic: {cost}; with more the queue only grows, and gradients come {stale} updates late "
        f"(mean with {worst.title}){_dynamic(study, '; ')}"
    )


def _dynamic(study: Study, joint: str = " ") -> str:
    """Say what the fastest dynamic schedule that learns gains, as a clause that ends the sentence."""
    candidates = [s for s in split_by_learning(study, study.schedules(dynamic=True))[0] if control_of(study, s)]
    if not candidates:
        return "." if joint != " " else ""
    fastest = max(candidates, key=lambda s: study.estimate(s, "steps_per_s").value)
    control = control_of(study, fastest)
    assert control is not None
    pair = study.paired(fastest, control, "steps_per_s")
    if not len(pair[0]):
        return "." if joint != " " else ""
    gain = statistics.paired_ratio(*pair)
    reached = round(study.estimate(fastest, "workers_max").value)
    words = f"growing from {fastest.start} to {reached} as episodes get longer ({fastest.span}) gives "
    words += f"{number(gain.value)} times the steps per second of {control.title}."
    return joint + (words if joint != " " else words[0].upper() + words[1:])


def _of_settings(study: Study) -> str:
    """Say which settings learn."""
    names: dict[bool, list[str]] = {True: [], False: []}
    for variant in dict.fromkeys(study.done["variant"]):
        part = study.of_variant(variant)
        for schedule in part.schedules():
            learns = part.estimate(schedule, "final_score").value >= study.score.learned_above
            names[learns].append(variant if study.compares_settings else f"{schedule.title} with {variant}")
    everything = len(names[True]) + len(names[False])
    if not names[False]:
        return f"All of the {everything} combinations tried learned."
    if not names[True]:
        return f"None of the {everything} combinations tried learned anything."
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
