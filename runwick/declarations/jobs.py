"""Declared jobs: what was said of each record, in how many places, and the entry of the catalog that follows."""

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from runwick.contracts.attempts import Kind, Lane
from runwick.contracts.errors import Problem
from runwick.contracts.jobs import Job, JobDeclaration, JobSettings, Unset
from runwick.contracts.names import JOB_NAME_MAX_CHARACTERS, name_problem
from runwick.contracts.policies import JobPolicy
from runwick.declarations.limits import JobLimits, crowding, limits_of
from runwick.declarations.settings import DEFAULT_QUEUE, Placed, conflicts, lane_of, merged, policy_of
from runwick.declarations.suggestions import quoted
from runwick.wire.profile import Codec
from runwick.wire.types import type_problems

CheckSettings = Callable[[str, JobSettings], list[Problem]]
"""Everything wrong with one layer of settings: (whose, the layer)."""


@dataclasses.dataclass(frozen=True, slots=True)
class JobEntry:
    """One job of a catalog: all that a dispatch or a run needs to know of it."""

    record: type[Job]
    kind: Kind
    codec: Codec[Any]
    lane: Lane
    """Where it goes unless a dispatch says otherwise."""
    policy: JobPolicy
    limits: JobLimits
    """When it may run, and by which keys it is unique."""


class DeclaredJob:
    """Everything that was said of one record."""

    def __init__(self, record: type[Job]) -> None:
        self.record = record
        self.declarations: list[JobDeclaration] = []
        self.configured: list[Placed] = []

    def declare(self, declaration: JobDeclaration) -> None:
        """Add what one declaration says; the same one may come again."""
        if not any(declaration is each for each in self.declarations):
            self.declarations.append(declaration)

    @property
    def label(self) -> str:
        """How messages call it: by its stored name, or by its class while it has none."""
        return f"job {quoted(self.declarations[0].name)}" if self.declarations else f"job {self.record.__qualname__}"

    def entry(
        self, defaults: JobSettings, check: CheckSettings, queue_limits: Mapping[str, int], problems: list[Problem]
    ) -> JobEntry | None:
        """Its entry in the catalog; None when anything is wrong with it, which is added to `problems`."""
        settings = self.settings(defaults)
        found = [*self._identity_problems(), *self._settings_problems(check)]
        found += [Problem("too_many_scopes", self.label, why) for why in crowding(settings, queue_limits)]
        if self.declarations:
            found += [Problem("invalid_payload_type", self.label, f"{why}.") for why in type_problems(self.record)]
        problems += found
        if found:
            return None
        kind = Kind(self.declarations[0].name, self.declarations[0].version)
        limits = limits_of(settings)
        return JobEntry(self.record, kind, Codec(self.record), lane_of(settings), policy_of(settings), limits)

    def settings(self, defaults: JobSettings) -> JobSettings:
        """What holds for it, the later layer winning."""
        declared = (each.settings for each in self.declarations)
        configured = (each.settings for each in self.configured)
        return merged([defaults, *declared, *configured])

    def _identity_problems(self) -> list[Problem]:
        """What is wrong with name and version, which must agree wherever they are given."""
        if not self.declarations:
            label = f"record {self.record.__qualname__}"
            sentence = f"{label} is not declared; name it with @rw.job(…), or add its module with rw.add_jobs."
            return [Problem("job_not_registered", label, sentence)]
        first, *others = self.declarations
        problems = []
        if why := name_problem(first.name, max_characters=JOB_NAME_MAX_CHARACTERS):
            problems.append(Problem("invalid_name", self.label, f"{quoted(first.name)} is not a job name: {why}."))
        if isinstance(first.version, bool) or not isinstance(first.version, int) or first.version < 1:
            sentence = f"version ({first.version!r}) must be a whole number from 1."
            problems.append(Problem("invalid_policy", self.label, sentence))
        for other in others:
            if (other.name, other.version) != (first.name, first.version):
                told = [f"{quoted(each.name)} version {each.version!r} at {each.where}" for each in (first, other)]
                sentence = f"the record {self.record.__qualname__} is {told[0]} but {told[1]}; give it one identity."
                problems.append(Problem("identity_conflict", self.label, sentence))
        return problems

    def _settings_problems(self, check: CheckSettings) -> list[Problem]:
        declared = [Placed(each.settings, each.where) for each in self.declarations]
        problems = [problem for layer in (declared, self.configured) for problem in conflicts(self.label, layer)]
        for settings, _ in (*declared, *self.configured):
            problems += check(self.label, settings)
        return problems


def entries(
    jobs: Sequence[DeclaredJob],
    defaults: JobSettings,
    check: CheckSettings,
    queue_limits: Mapping[str, int],
    problems: list[Problem],
) -> list[JobEntry]:
    """The entries of all jobs, each name once."""
    found = [entry for job in jobs if (entry := job.entry(defaults, check, queue_limits, problems))]
    problems += _duplicates([job for job in jobs if job.declarations])
    return found


def queues_of(jobs: Iterable[DeclaredJob], defaults: JobSettings) -> frozenset[str]:
    """The queues that these jobs use, also those of jobs with which something else is wrong."""
    declared = (job.settings(defaults) for job in jobs if job.declarations)
    queues = (DEFAULT_QUEUE if isinstance(each.queue, Unset) else each.queue for each in declared)
    return frozenset(queue for queue in queues if name_problem(queue) is None)


def _duplicates(jobs: Sequence[DeclaredJob]) -> Iterator[Problem]:
    owners: dict[str, DeclaredJob] = {}
    for job in jobs:
        first = owners.setdefault(job.label, job)
        if first is not job:
            names = [f"{each.record.__module__}.{each.record.__qualname__}" for each in (first, job)]
            sentence = f"{job.label} is the name of two records, {names[0]} and {names[1]}; rename one."
            yield Problem("duplicate_job_name", job.label, sentence)
