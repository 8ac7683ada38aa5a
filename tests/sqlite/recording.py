"""Which statements an act runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from runwick.stores.sqlite import driver
from runwick.stores.steps import Step


@contextmanager
def recorded() -> Iterator[list[Step]]:
    """All steps that stores of this process execute meanwhile."""
    steps: list[Step] = []
    execute = driver._execute

    def keep(connection: Any, step: Step) -> Any:
        steps.append(step)
        return execute(connection, step)

    with mock.patch.object(driver, "_execute", keep):
        yield steps
