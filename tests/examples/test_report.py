"""What the stdlib example shows at its end."""

import io
import re
from typing import Any

from rich.console import Console

from examples.stdlib.progress import progress
from examples.stdlib.report import (
    Costly,
    Examined,
    Facts,
    Kept,
    command_for_dashboard,
    command_for_more,
    module_name,
    report,
)
from runwick.contracts import Usage

SUMMARY = {
    "event": "summary",
    "done": 4,
    "succeeded": 4,
    "failed": 0,
    "retried": 0,
    "elapsed_s": 2.0,
    "share_in_handlers": 0.96,
    "supervisor_cpu_s": 0.25,
}

ID = "0199c0de-0000-7000-8000-000000000001"
USAGE = Usage(wall_us=1_250_000, cpu_user_us=1_000_000, cpu_system_us=234_000, rss_peak_bytes=64 * 2**20)


def module(path: str, branches: int, *, process: int = 71, cpu_us: int = 500_000) -> Examined:
    measures = {
        "parsed": True,
        "lines": 1_200,
        "functions": 3,
        "classes": 1,
        "branches": branches,
        "nesting": 4,
        "most_complex": {"name": "weigh", "complexity": 9},
        "process": process,
    }
    return Examined(path, measures, Usage(cpu_user_us=cpu_us, cpu_system_us=0))


def facts(**changed: Any) -> Facts:
    parts: dict[str, Any] = {
        "python": "CPython 3.11.7",
        "cores": 2,
        "summary": SUMMARY,
        "examined": [
            module("plain.py", 10),
            module("knotty.py", 99, process=72),
            module("middling.py", 50),
            Examined("ancient.py", {"parsed": False, "lines": 7, "process": 71}, None),
        ],
        "supervisor": 70,
        "most_cpu": [Costly("knotty.py", ID, USAGE)],
        "most_memory": [Costly("plain.py", "0199c0de-0000-7000-8000-000000000002", Usage())],
        "application": "shop.jobs",
        "kept": Kept("the SQLite file"),
    }
    return Facts(**{**parts, **changed})


def printed(facts: Facts, width: int = 120) -> str:
    out = io.StringIO()
    Console(file=out, width=width).print(report(facts))
    return out.getvalue()


def test_modules_are_ranked_by_their_branches() -> None:
    text = printed(facts())
    ranking = text[: text.index("All of")]
    assert re.findall(r"^(\w+) +1,200", ranking, re.MULTILINE) == ["knotty", "middling", "plain"]
    assert "weigh (9)" in ranking


def test_totals_leave_out_what_did_not_parse_and_say_so() -> None:
    text = " ".join(printed(facts()).split())
    assert "3 modules with 3,600 lines, 9 functions, 3 classes, 159 branches; 1 more does not parse." in text


def test_costs_name_the_job_and_show_a_dash_for_what_was_not_measured() -> None:
    lines = printed(facts()).splitlines()
    (known,) = [line for line in lines if line.endswith("000000000001")]
    (unknown,) = [line for line in lines if line.rstrip().endswith("000000000002")]
    assert known.split()[1:7] == ["1.23", "s", "1.25", "s", "64", "MiB"]
    assert unknown.split()[1:4] == ["–", "–", "–"]


def test_it_says_what_ran_where() -> None:
    lines = [" ".join(line.split()) for line in printed(facts()).splitlines()]
    assert "executor 71 3 1.00 s called the handler, nothing else" in lines
    assert "executor 72 1 0.50 s called the handler, nothing else" in lines
    assert "supervisor 70 0.25 s claimed and settled in the SQLite file" in lines


def test_a_server_that_was_started_for_the_run_has_its_line_and_is_brought_back_for_a_look() -> None:
    on_server = facts(kept=Kept("PostgreSQL", (69, 1.5), "python -m bring.back"))
    lines = [" ".join(line.split()) for line in printed(on_server).splitlines()]
    assert "supervisor 70 0.25 s claimed and settled in PostgreSQL" in lines
    assert "PostgreSQL 69 1.50 s kept the jobs" in lines
    assert command_for_more(on_server).startswith("python -m bring.back .venv/bin/runwick jobs get ")


def test_it_ends_with_throughput_and_leads_to_the_command_that_shows_more() -> None:
    text = " ".join(printed(facts()).split())
    assert "4 jobs in 2.0 s: 2 jobs/s, 96.0 % of both cores in handlers." in text
    assert "failed" not in text
    command = command_for_more(facts())
    assert command == ".venv/bin/runwick jobs get 0199c0de-0000-7000-8000-000000000001 --app shop.jobs"
    assert command_for_dashboard(facts()) == ".venv/bin/runwick web --app shop.jobs"


def test_failures_are_not_hidden() -> None:
    text = printed(facts(summary={**SUMMARY, "failed": 1, "retried": 2}))
    assert "1 failed, 2 tries were repeated." in text


def test_a_narrow_terminal_cuts_long_names_and_never_a_job_id() -> None:
    text = printed(
        facts(most_memory=[Costly(f"test/{'long' * 9}.py", ID, USAGE), Costly("test/typing.py", ID, USAGE)]), 80
    )
    assert ID in text
    assert "test.longlonglong…" in text
    assert "test.typing " in text


def test_a_package_goes_by_its_own_name() -> None:
    assert [module_name(path) for path in ("asyncio/__init__.py", "__future__.py")] == ["asyncio", "__future__"]


def test_without_a_terminal_progress_is_plain_lines_and_unusual_events_are_sentences() -> None:
    counts: dict[str, Any] = {"succeeded": 50, "failed": 0, "share_in_handlers": 0.9}
    events: list[dict[str, Any]] = [
        {"event": "opened", "cores": 2},
        {"event": "progress", "elapsed_s": 0.5, **counts},
        {"event": "executor_died", "text": "executor 2 died"},
        {"event": "progress", "elapsed_s": 2.5, **counts},
        {"event": "summary", "elapsed_s": 3.0, **counts, "succeeded": 100},
    ]
    out = io.StringIO()
    last = progress(Console(file=out, width=120), events, total=100)
    assert last["opened"] == events[0]
    assert last["summary"] == events[-1]
    assert out.getvalue().splitlines() == [
        "executor 2 died",
        "  2.5 s  50 of 100 examined · 20 jobs/s · 90.0 % of the cores in handlers",
        "  3.0 s  100 of 100 examined · 33 jobs/s · 90.0 % of the cores in handlers",
    ]
