"""What to say of a control that a job's state does not allow: which one does what was probably meant."""

from collections.abc import Mapping
from typing import Final

from runwick.contracts.controls import ControlAction
from runwick.contracts.states import JobState

_INSTEAD: Final[Mapping[tuple[ControlAction, JobState], str]] = {
    (ControlAction.RETRY, JobState.SUCCEEDED): "the job has succeeded, and only what failed or was cancelled is "
    "retried; use rerun to let it run again",
    (ControlAction.RERUN, JobState.FAILED): "the job has failed, and only what succeeded is rerun; use retry to let it "
    "run again",
    (ControlAction.RERUN, JobState.CANCELLED): "the job was cancelled, and only what succeeded is rerun; use retry to "
    "let it run again",
}


def refused_for_state(action: ControlAction, state: JobState | None) -> str:
    """Why a job in this state answered ``invalid_state`` to this action, in words."""
    known = None if state is None else _INSTEAD.get((action, state))
    return known or f"{action.value} does not go with the job as it stands"
