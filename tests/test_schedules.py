"""Schedules: the documents' rules, driven by scripted episode times, and what is refused."""

import pytest

from a3c_core.schedules import Measured, ScheduleConfig, Span, parse_workers, target_workers


def follow(span, schedule, episode_times):
    """Return [(episode, workers)] at every change, for episodes whose mean time over the window is scripted."""
    workers, changed, changes = span.start, 0, []
    for episode, mean_s in enumerate(episode_times, start=1):
        measured = Measured(workers, mean_s, episode - changed, utilisation=0.5, queue_length=0)
        target = target_workers(span, schedule, measured)
        if target != workers:
            workers, changed = target, episode
            changes.append((episode, workers))
    return changes


def test_reports_rule_adds_at_20_s_and_every_further_10_s():
    times = [20.0] * 1500 + [20.1] * 2000 + [30.0] * 2000 + [30.1] * 2000 + [40.1] * 2000
    assert follow(Span(6, 12), ScheduleConfig(rule="report"), times) == [(1501, 7), (5501, 8), (7501, 9)]


def test_reports_rule_waits_1000_episodes_between_additions():
    assert follow(Span(10, 20), ScheduleConfig(rule="report"), [75.0] * 9000) == [
        (1000, 11),
        (2000, 12),
        (3000, 13),
        (4000, 14),
        (5000, 15),
        (6000, 16),
    ]


def test_reports_rule_stops_at_the_end_of_the_span():
    changes = follow(Span(6, 8), ScheduleConfig(rule="report"), [500.0] * 5000)
    assert changes == [(1000, 7), (2000, 8)]


def test_slides_rule_adds_one_two_three_above_20_40_60_s():
    times = [20.0] * 10 + [20.1] * 10 + [40.0] * 10 + [40.1] * 10 + [60.1] * 10 + [30.0] * 10
    assert follow(Span(10, 32), ScheduleConfig(rule="slides"), times) == [(11, 11), (31, 12), (41, 13)]


def test_slides_rule_adds_several_at_once_when_time_jumps():
    assert follow(Span(10, 12), ScheduleConfig(rule="slides"), [100.0] * 3) == [(1, 12)]


def test_repeated_rule_adds_each_time_it_looks():
    times = [20.0] * 1500 + [20.1] * 2000 + [40.1] * 2000 + [15.0] * 2000
    changes = [(1501, 11), (2501, 12), (3501, 14), (4501, 16)]
    assert follow(Span(10, 32), ScheduleConfig(rule="repeated"), times) == changes
    assert follow(Span(10, 13), ScheduleConfig(rule="repeated"), times) == [*changes[:2], (3501, 13)]


def test_thresholds_are_settings():
    schedule = ScheduleConfig(rule="report", first_s=2.0, further_s=1.0, spacing=5)
    assert follow(Span(1, 9), schedule, [2.5] * 20 + [3.5] * 20) == [(5, 2), (21, 3)]


def test_fixed_never_changes():
    assert follow(Span(10, 10), ScheduleConfig(), [500.0] * 5000) == []


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("10", Span(10, 10)),
        (40, Span(40, 40)),
        ("6->12", Span(6, 12)),
        ("10→20", Span(10, 20)),
        (" 10 -> 32 ", Span(10, 32)),
    ],
)
def test_worker_counts_parse(text, span):
    assert parse_workers(text, ScheduleConfig()) == span


def test_auto_takes_its_bounds_from_the_schedule():
    assert parse_workers("auto", ScheduleConfig(auto_min=3, auto_max=9)) == Span(3, 9, auto=True)
    with pytest.raises(ValueError, match="auto_min 9 is above auto_max 3"):
        parse_workers("auto", ScheduleConfig(auto_min=9, auto_max=3))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("0", "at least 1"),
        ("-4", "not a worker count"),
        ("12->6", "only adds workers"),
        ("ten", "10->20"),
        ("0->5", "least 1"),
    ],
)
def test_nonsense_is_refused_with_the_reason(text, reason):
    with pytest.raises(ValueError, match=reason):
        parse_workers(text, ScheduleConfig())


@pytest.mark.parametrize("workers", [2, 10, 39])
def test_auto_moves_towards_its_target_within_bounds(workers):
    schedule = ScheduleConfig(auto_min=2, auto_max=40, spacing=0)
    span = Span(2, 40, auto=True)

    def target(utilisation, queue_length=0, since=10_000):
        return target_workers(span, schedule, Measured(workers, 0.0, since, utilisation, queue_length))

    assert workers < target(0.1) <= min(40, workers + max(1, workers // 2))
    assert target(1.0, queue_length=500) == max(2, workers // 2 if workers * 0.4 < workers // 2 else int(workers * 0.4))
    assert target(0.1, since=0) == workers  # too soon
    assert target(0.8) == workers
