"""Every value lies within its axis, whatever the values are, and round values stand beside it."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from runwick.management.bodies import DistributionBody, PointBody, TrendBody
from runwick.management.dashboard import plots, texts
from runwick.management.dashboard.scales import Scale

AMOUNTS = st.integers(0, 2**53 - 1)
BASES = st.sampled_from([10, 1024])


@given(st.lists(AMOUNTS), BASES)
def test_every_value_lies_within_its_axis(values: list[int], base: int) -> None:
    scale = Scale.over(values, base=base)
    assert all(0 <= scale.place(value) <= 1 for value in values)
    assert all(
        scale.place(low) <= scale.place(high) for low, high in zip(sorted(values), sorted(values)[1:], strict=False)
    )


@given(st.lists(AMOUNTS, min_size=1), BASES)
def test_few_round_values_stand_beside_it(values: list[int], base: int) -> None:
    scale = Scale.over(values, base=base)
    ticks = scale.ticks()
    assert 2 <= len(ticks) <= 6
    assert [tick.place for tick in ticks] == sorted(tick.place for tick in ticks)
    assert scale.low <= ticks[0].value
    assert ticks[-1].value <= scale.high * 1.000001


def test_orders_of_magnitude_only_where_the_values_differ_by_them() -> None:
    assert [tick.value for tick in Scale.over([3, 9]).ticks()] == [0, 5, 10]
    assert [tick.value for tick in Scale.over([3, 9_000]).ticks()] == [1, 10, 100, 1_000, 10_000]
    assert [texts.size(tick.value) for tick in Scale.over([60 << 20], base=1024).ticks()] == [
        "0 B",
        "20 MiB",
        "40 MiB",
        "60 MiB",
    ]


@given(st.lists(st.integers(0, 10**9), max_size=60))
def test_a_trend_stays_within_its_box(values: list[int]) -> None:
    line = plots.trend(TrendBody(step_ms=60_000, values=tuple(values), is_sampled=False))
    spots = [tuple(map(float, spot.split(","))) for spot in line.line.split()]
    assert len(spots) >= 2
    assert all(0 <= x <= line.width and 0 <= y <= line.height for x, y in spots)


def test_values_that_are_all_the_same_are_written_once() -> None:
    alike = dict.fromkeys(("minimum", "p25", "p50", "p75", "p90", "p99", "maximum"), 24 << 20)
    memory = next(figure for figure in plots.FIGURES if figure.member == "rss_peak_bytes")
    assert [end.text for end in plots.strip(DistributionBody(count=3, **alike), memory, 24 << 20).ends] == ["24 MiB"]
    far = plots.strip(DistributionBody(count=3, **{**alike, "minimum": 1 << 20}), memory)
    assert [(end.text, far.anchor(end)) for end in far.ends] == [("1.0 MiB", "start"), ("24 MiB", "end")]
    outlier = plots.strip(DistributionBody(count=3, **{**alike, "maximum": 25 << 20}), memory, 90 << 20)
    assert [end.text for end in outlier.ends] == ["24 MiB to 25 MiB"]


@given(st.lists(AMOUNTS, min_size=7, max_size=7), AMOUNTS)
def test_a_strip_has_its_marks_in_order_and_the_run_among_them(values: list[int], this: int) -> None:
    low, *middle, high = sorted(values)
    parts = dict(zip(("p25", "p50", "p75", "p90", "p99"), middle, strict=True))
    spread = DistributionBody(count=9, minimum=low, maximum=high, **parts)
    strip = plots.strip(spread, plots.FIGURES[0], this)
    ends = strip.ends
    assert len(ends) == 1 or ends[-1].at - ends[0].at > 100, "two texts do not touch"
    assert all(strip.anchor(end) == "middle" or end.at < 90 or end.at > strip.width - 90 for end in ends)
    places = [mark.at for mark in strip.marks]
    assert places == sorted(places)
    assert strip.this is not None
    assert all(0 <= place <= strip.width for place in [*places, strip.this.at])


def point(**changes: Any) -> PointBody:
    values: dict[str, Any] = {
        "job_id": "0199c0de-0000-7000-8000-000000000000",
        "generation": 1,
        "number": 1,
        "name": "reports.build",
        "queue": "reports",
        "tenant": None,
        "ended_at": "2026-11-29T12:04:31.000Z",
        "outcome": "succeeded",
        "code": None,
        "death": None,
        "payload_bytes": 100,
        "wall_us": 1_000,
        "cpu_us": None,
        "rss_peak_bytes": None,
        "allocated_bytes": None,
    }
    return PointBody(**{**values, **changes})


def test_what_was_not_measured_has_no_cloud() -> None:
    wall, cpu = plots.FIGURES[:2]
    assert plots.over_time([point()], cpu) is None
    assert plots.by_payload([], wall) is None


@given(st.lists(st.tuples(AMOUNTS, st.integers(0, 2**20), st.integers(0, 59), st.booleans()), min_size=1, max_size=20))
def test_every_dot_lies_between_the_axes(runs: list[tuple[int, int, int, bool]]) -> None:
    points = [
        point(
            wall_us=wall_us,
            payload_bytes=payload_bytes,
            ended_at=f"2026-11-29T12:04:{second:02}.000Z",
            outcome="succeeded" if succeeded else "failed",
        )
        for wall_us, payload_bytes, second, succeeded in runs
    ]
    for cloud in (plots.over_time(points, plots.FIGURES[0]), plots.by_payload(points, plots.FIGURES[0])):
        assert cloud is not None
        assert [dot.succeeded for dot in cloud.dots] == [run[3] for run in runs]
        assert all(cloud.left <= dot.x <= cloud.right and cloud.top <= dot.y <= cloud.bottom for dot in cloud.dots)


def test_a_cloud_ends_at_its_most_dots() -> None:
    cloud = plots.over_time([point()] * (plots.DOTS_MAX + 1), plots.FIGURES[0])
    assert cloud is not None
    assert len(cloud.dots) == plots.DOTS_MAX
