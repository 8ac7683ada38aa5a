"""The trace that a dispatch belongs to, in the W3C form, so that the run can be linked to what created it.

OpenTelemetry is asked only where the application has loaded it already; nothing is imported for it.
"""

import re
import sys
from typing import Final, NamedTuple

TRACESTATE_MAX_CHARACTERS: Final = 512

_TRACEPARENT: Final = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")
_TRACESTATE: Final = re.compile(rf"[\x20-\x7e]{{1,{TRACESTATE_MAX_CHARACTERS}}}")


class Trace(NamedTuple):
    """Both are None where there is no trace."""

    traceparent: str | None = None
    tracestate: str | None = None


NO_TRACE: Final = Trace()


def current_trace() -> Trace:
    """The trace of the running code; a fault in the telemetry library counts as none, for it must not stop a job."""
    api = sys.modules.get("opentelemetry.trace")
    if api is None:
        return NO_TRACE
    try:
        span = api.get_current_span().get_span_context()
        if not span.is_valid:
            return NO_TRACE
        traceparent = f"00-{span.trace_id:032x}-{span.span_id:016x}-{int(span.trace_flags):02x}"
        tracestate = span.trace_state.to_header()
    except Exception:
        return NO_TRACE
    for trace in (Trace(traceparent, tracestate), Trace(traceparent)):
        if is_well_formed(trace):
            return trace
    return NO_TRACE


def is_well_formed(trace: Trace) -> bool:
    """Whether both have the form, or are None."""
    return (trace.traceparent is None or _TRACEPARENT.fullmatch(trace.traceparent) is not None) and (
        trace.tracestate is None or _TRACESTATE.fullmatch(trace.tracestate) is not None
    )
