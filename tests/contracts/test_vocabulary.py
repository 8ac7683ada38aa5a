import subprocess
import sys

import pytest

from runwick.contracts.codes import CODES
from runwick.contracts.identity import id_bytes, id_text
from runwick.contracts.names import name_problem
from runwick.contracts.states import LEGAL_MOVES, TERMINAL_STATES, JobState


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
