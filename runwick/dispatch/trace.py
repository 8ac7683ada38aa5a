"""The trace that a dispatch belongs to, in the W3C form, so that the run can be linked to what created it.

OpenTelemetry is asked only where the application has loaded it already; nothing is imported for it.
"""

import sys
from typing import Final, NamedTuple

TRACESTATE_MAX_CHARACTERS: Final = 512


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
    return Trace(traceparent, tracestate if 0 < len(tracestate) <= TRACESTATE_MAX_CHARACTERS else None)
