"""A package that only shares job types, for tests of `add_jobs`."""

from runwick import Job, job


@job("mail.welcome", queue="mail", max_executions=7)
class Welcome(Job):
    user: int


@job("mail.reset")
class Reset(Job):
    user: int


class Unnamed(Job):
    user: int


class Derived(Welcome):
    """A name is not inherited, so this is no job."""
