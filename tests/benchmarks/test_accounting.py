"""What accounting costs is told for every way of measuring."""

import json
import subprocess
import sys

import pytest

from scripts.benchmarks.accounting import WAYS
from scripts.benchmarks.supervised import PROJECT


def test_every_way_of_measuring_has_its_cost_and_every_work_its_share() -> None:
    command = [sys.executable, "-m", "scripts.benchmarks.accounting", "1"]
    answer = json.loads(subprocess.run(command, cwd=PROJECT, check=True, stdout=subprocess.PIPE).stdout)
    assert set(answer["attempt_us"]) == {"off", *WAYS}
    assert min(answer["attempt_us"].values()) > 0
    for way in WAYS:
        difference_us = answer["attempt_us"][way] - answer["attempt_us"]["off"]
        assert answer["accounting_us"][way] == pytest.approx(difference_us, abs=0.02)
    assert set(answer["slower"]) == {"spin", "allocate", "json"}
