"""Where a URL points, and what a URL may not ask for."""

from pathlib import Path

import pytest

from runwick.contracts.errors import ConfigurationError
from runwick.stores.sqlite.address import path_of

BASE = Path("/srv/shop")


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///jobs.db", "/srv/shop/jobs.db"),
        ("sqlite:////var/lib/jobs.db", "/var/lib/jobs.db"),
        ("sqlite:///data/../jobs.db", "/srv/shop/jobs.db"),
        ("sqlite:///a%20b%23c%3Fd.db", "/srv/shop/a b#c?d.db"),
        ("sqlite:///%C3%A4.db", "/srv/shop/ä.db"),
        ("sqlite:///ä.db", "/srv/shop/ä.db"),
    ],
)
def test_a_url_names_one_absolute_path(url: str, path: str) -> None:
    assert path_of(url, BASE) == Path(path)


@pytest.mark.parametrize(
    ("url", "code", "said"),
    [
        ("sqlite:///", "invalid_policy", "names no file"),
        ("sqlite://", "invalid_policy", "names no file"),
        ("sqlite:///:memory:", "invalid_policy", "in memory"),
        ("sqlite:///:memory:?cache=shared", "invalid_policy", "lock each other out"),
        ("sqlite:///jobs.db?mode=memory", "invalid_policy", "'mode' is refused"),
        ("sqlite:///jobs.db?mode=ro", "invalid_policy", "'mode' is refused: it always opens the file for reading and"),
        ("sqlite:///jobs.db?cache=shared", "invalid_policy", "'cache' is refused"),
        ("sqlite:///jobs.db?foreign_keys=0", "invalid_policy", "foreign keys are always checked"),
        ("sqlite:///jobs.db?nolock=1", "invalid_policy", "two writers destroy the file"),
        ("sqlite:///jobs.db?immutable=1", "invalid_policy", "the file changes"),
        ("sqlite:///jobs.db?vfs=unix-none", "invalid_policy", "SQLite's own file locking"),
        ("sqlite:///jobs.db?timeout=5", "invalid_store", "takes no options, this has 'timeout'"),
        ("sqlite:///jobs.db?", "invalid_store", "as %3F"),
        ("sqlite:///jobs.db#1", "invalid_store", "as %23"),
        ("sqlite://host/jobs.db", "invalid_store", "has no host"),
        ("sqlite://jobs.db", "invalid_store", "has no host"),
        ("sqlite:jobs.db", "invalid_store", "sqlite:///FILE (relative)"),
        ("postgresql://host/jobs", "invalid_store", "sqlite:///FILE (relative)"),
        ("sqlite:///file:jobs.db", "invalid_store", "without a file: URL"),
        ("sqlite:///%ff.db", "invalid_store", "not UTF-8"),
        ("sqlite:///a%00b.db", "invalid_store", "NUL"),
    ],
)
def test_a_url_that_cannot_keep_jobs_safe_is_refused_in_one_sentence(url: str, code: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        path_of(url, BASE)
    (problem,) = refused.value.problems
    assert (problem.code, problem.setting) == (code, "store")
    assert said in problem.message


def test_a_refusal_does_not_repeat_the_url() -> None:
    with pytest.raises(ConfigurationError) as refused:
        path_of("sqlite:///jobs.db?key=s3cret", BASE)
    assert "s3cret" not in str(refused.value)
