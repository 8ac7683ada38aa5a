import pickle
import subprocess
import sys

import pytest

from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.codes import CODES
from runwick.contracts.dispatching import Command, Prepared, PreparedBatch
from runwick.contracts.errors import DispatchOutcomeUnknown, Disposition
from runwick.contracts.identity import id_bytes, id_text, issued_at_ms, job_of_operation
from runwick.contracts.names import name_problem
from runwick.contracts.policies import JobPolicy
from runwick.contracts.states import LEGAL_MOVES, TERMINAL_STATES, JobState, Priority
from runwick.runtime.ambient import SystemIds


def test_contracts_load_msgspec_and_nothing_else() -> None:
    script = "import sys; before=set(sys.modules); import runwick.contracts; " + (
        "print(sorted({m.split('.')[0] for m in set(sys.modules) - before} & "
        "{'asyncio','sqlite3','psycopg','redis','click','psutil','croniter','msgspec','ssl','socket'}))"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "['msgspec']"


def test_every_state_has_its_moves_and_terminal_ones_only_open_a_generation() -> None:
    assert set(LEGAL_MOVES) == set(JobState)
    for state in TERMINAL_STATES:
        assert LEGAL_MOVES[state] == {JobState.PENDING}


def test_codes_are_stable_words_with_a_hint() -> None:
    for code, row in CODES.items():
        assert row.code == code
        assert name_problem(code) is None
        assert row.hint.endswith(".")


@pytest.mark.parametrize("bad", ["", " a", "a b", "é", "-a", "a\n", "a" * 129, 7])
def test_what_is_not_a_name(bad: object) -> None:
    assert name_problem(bad) is not None


def test_ids_read_back() -> None:
    text = "0199c0de-0000-7000-8000-000000000001"
    assert id_text(id_bytes(text)) == text
    with pytest.raises(ValueError, match="invalid_id"):
        id_bytes("0199")


def test_an_operation_and_its_job_name_each_other() -> None:
    operation = SystemIds().ordered()
    job = job_of_operation(operation)
    assert job != operation
    assert job_of_operation(job) == operation
    assert job[:15] == operation[:15]  # so that both sort alike
    assert issued_at_ms(id_bytes("0199c0de-0000-7000-8000-000000000001")) == 0x0199C0DE0000


def test_only_what_may_have_been_written_is_unknown() -> None:
    unknown = {code for code, row in CODES.items() if row.disposition is Disposition.OUTCOME_UNKNOWN}
    assert unknown == {"outcome_unknown", "cancelled_after_send", "expired_unknown"}
    assert not any(CODES[code].retryable for code in unknown)


def a_command(operation: bytes) -> Command:
    return Command(
        operation_id=operation,
        job_id=job_of_operation(operation),
        application="shop",
        kind=Kind("reports.build", 1),
        lane=Lane("reports", Priority.LOW),
        policy=JobPolicy(),
        payload=b'{"card":"4111"}',
        deadline_ms=1_750_000_000_001,
    )


def test_a_prepared_dispatch_shows_its_ids_and_never_its_payload() -> None:
    operation = id_bytes("0199c0de-0000-7000-8000-000000000000")
    one = Prepared(a_command(operation))
    batch = PreparedBatch((one.command, one.command))
    assert one.operation_id == "0199c0de-0000-7000-8000-000000000000"
    assert one.job_id == "0199c0de-0000-7000-8000-000000000001"
    assert one.deadline.isoformat() == batch.deadline.isoformat() == "2025-06-15T15:06:40.001000+00:00"
    assert batch.operation_ids == [one.operation_id] * 2
    assert "4111" not in repr(one) + repr(batch)
    assert b"4111" in one.export()
    unknown = DispatchOutcomeUnknown("outcome_unknown", "", one)
    assert (unknown.operation_id, unknown.disposition) == (one.operation_id, Disposition.OUTCOME_UNKNOWN)
    assert DispatchOutcomeUnknown("outcome_unknown", "", batch).operation_id is None
    assert pickle.loads(pickle.dumps(unknown)).prepared == one  # as from a process pool
