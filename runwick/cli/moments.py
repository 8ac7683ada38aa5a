"""Options that take times and durations."""

import datetime
from typing import Any, Final

import click


class MomentType(click.ParamType[int]):
    """A moment in ISO 8601 with a time zone, as milliseconds since 1970."""

    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            moment = datetime.datetime.fromisoformat(value)
        except ValueError:
            moment = None
        if moment is None or moment.tzinfo is None:
            self.fail(f"{value!r} is no moment with a time zone, such as 2026-11-01T00:00:00Z", param, ctx)
        return int(moment.timestamp() * 1_000 // 1)


class DurationType(click.ParamType[int]):
    """A duration such as 250ms, 15s, 2min or 24h, in milliseconds."""

    name = "duration"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        from runwick.config.durations import parse_duration

        try:
            return parse_duration(value) // datetime.timedelta(milliseconds=1)
        except ValueError as error:
            self.fail(str(error), param, ctx)


MOMENT: Final = MomentType()
DURATION: Final = DurationType()
