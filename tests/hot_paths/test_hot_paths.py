from pathlib import Path

import pytest

from tests.hot_paths.ceilings import CEILINGS
from tests.hot_paths.groups import GROUPS
from tests.hot_paths.guard import UNKNOWN, complaints


@pytest.mark.timeout(300)  # for machines on which others compute; a few seconds each, otherwise
@pytest.mark.parametrize("group", GROUPS)
def test_hot_paths_cost_what_they_may(group: str, tmp_path: Path) -> None:
    found = complaints(group, GROUPS[group](tmp_path), CEILINGS)
    if found:
        pytest.fail("\n".join([*found, "(`python -m tests.hot_paths --write` makes the table anew)"]), pytrace=False)


def test_every_ceiling_belongs_to_a_group_and_has_a_reason() -> None:
    assert {name.partition(" ")[0] for name in CEILINGS} == set(GROUPS)
    assert [name for name, ceiling in CEILINGS.items() if ceiling.why == UNKNOWN] == []
