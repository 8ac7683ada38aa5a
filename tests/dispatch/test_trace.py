import sys
import types
from typing import Any

import pytest

from runwick.dispatch.trace import NO_TRACE, Trace, current_trace


class State(dict[str, str]):
    def to_header(self) -> str:
        return ",".join(f"{key}={value}" for key, value in self.items())


def load_telemetry(monkeypatch: pytest.MonkeyPatch, **span: Any) -> None:
    """Stand in for the OpenTelemetry API as far as it is asked."""
    context = types.SimpleNamespace(
        **{"is_valid": True, "trace_id": 0xAB, "span_id": 0xCD, "trace_flags": 1, "trace_state": State(), **span}
    )
    api = types.ModuleType("opentelemetry.trace")
    api.get_current_span = lambda: types.SimpleNamespace(get_span_context=lambda: context)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", api)


def test_without_telemetry_there_is_no_trace_and_nothing_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "opentelemetry.trace", raising=False)
    before = set(sys.modules)
    assert current_trace() is NO_TRACE
    assert set(sys.modules) == before


def test_the_running_span_is_carried_along(monkeypatch: pytest.MonkeyPatch) -> None:
    load_telemetry(monkeypatch, trace_state=State(vendor="1"))
    assert current_trace() == Trace(f"00-{'ab':0>32}-{'cd':0>16}-01", "vendor=1")


def test_outside_a_span_there_is_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    load_telemetry(monkeypatch, is_valid=False)
    assert current_trace() == NO_TRACE


@pytest.mark.parametrize(("length", "kept"), [(512, True), (513, False)])
def test_a_state_that_is_too_long_is_left_out(monkeypatch: pytest.MonkeyPatch, length: int, kept: bool) -> None:
    load_telemetry(monkeypatch, trace_state=State(v="x" * (length - 2)))
    assert (current_trace().tracestate is not None) == kept
    assert current_trace().traceparent is not None


def test_a_fault_in_the_telemetry_never_stops_a_dispatch(monkeypatch: pytest.MonkeyPatch) -> None:
    load_telemetry(monkeypatch, trace_id="not a number")
    assert current_trace() == NO_TRACE
