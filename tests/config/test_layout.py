"""How problems look."""

from datetime import timedelta

from runwick.config.check import check_pools, check_worker_options
from runwick.config.layout import lay_out
from runwick.config.options import WorkerOptions
from runwick.contracts import Problem
from runwick.declarations.pools import Pool


def test_problems_are_aligned_ordered_by_code_and_wrapped() -> None:
    problems = [
        *check_worker_options(WorkerOptions(lease_duration=timedelta(seconds=30))),
        *check_pools([Pool(name="main", queues=("imgaes",))], {"images"}, 16),
    ]
    assert lay_out(problems, width=100) == (
        "Runwick cannot start: 2 problems.\n"
        '  invalid_pool    pool "main" subscribes to queue "imgaes", which no job uses and nothing declares.\n'
        '                  Did you mean "images"?\n'
        "  invalid_timing  lease_duration: V-04: renewal_interval + renewal_jitter + 2 ×\n"
        "                  control_request_timeout + control_retry_max_backoff + scheduler_allowance\n"
        "                  (31000 ms) must be < lease_duration − lease_safety_margin (20000 ms). Raise\n"
        "                  lease_duration to more than 41 s, or lower renewal_interval."
    )


def test_one_problem_is_singular_and_fits_on_its_line() -> None:
    problem = Problem("missing_store", "store", "no store is configured. Give store= or set RUNWICK_STORE.")
    assert lay_out([problem], "runwick-supervise", width=120) == (
        "runwick-supervise cannot start: 1 problem.\n"
        "  missing_store  store: no store is configured. Give store= or set RUNWICK_STORE."
    )


def test_line_breaks_of_a_message_stay_and_paths_are_not_cut() -> None:
    path = "/srv/app/" + "very-long-directory-name/" * 4 + "jobs.py"
    problem = Problem("import_failed", "app.jobs", f"the import failed:\n{path}\nNameError: name 'x' is not defined")
    assert lay_out([problem], width=60) == (
        "Runwick cannot start: 1 problem.\n"
        "  import_failed  app.jobs: the import failed:\n"
        f"                 {path}\n"
        "                 NameError: name 'x' is not defined"
    )


def test_a_narrow_terminal_still_gets_readable_lines() -> None:
    problem = Problem("invalid_policy", "reader_threads", "reader_threads (9) must be ≤ 8. Lower it to 8 or less.")
    assert lay_out([problem], width=10).splitlines() == [
        "Runwick cannot start: 1 problem.",
        "  invalid_policy  reader_threads (9) must be ≤",
        "                  8. Lower it to 8 or less.",
    ]


def test_a_message_cannot_steer_the_terminal() -> None:
    problem = Problem("import_failed", "app.jobs", "RuntimeError: \x1b[2Jgöne")
    assert lay_out([problem], width=80).endswith(r"RuntimeError: \x1b[2Jgöne")
