from pathlib import Path

import pytest

from runwick import ConfigurationError
from runwick.app.stores import migrate_store, open_store, resolve_url
from runwick.config.options import StoreOptions
from runwick.runtime.ambient import SystemClock, SystemIds


@pytest.mark.parametrize(
    ("url", "resolved"),
    [
        ("sqlite:///jobs.db", "sqlite:////srv/shop/jobs.db"),
        ("sqlite:////var/jobs.db", "sqlite:////var/jobs.db"),
        ("sqlite:///a%23b%3F%25.db", "sqlite:////srv/shop/a%23b%3F%25.db"),
        ("memory://", "memory://"),
    ],
)
def test_a_resolved_url_names_the_same_place_everywhere(url: str, resolved: str) -> None:
    assert resolve_url(url, Path("/srv/shop")) == resolved
    assert resolve_url(resolved, Path("/elsewhere")) == resolved


@pytest.mark.parametrize("url", ["", "jobs.db", "/srv/jobs.db", "SQLITE:///jobs.db", "redis://:secret@host", "://x"])
def test_an_unknown_url_is_refused_without_being_repeated(url: str) -> None:
    for use in (
        lambda: resolve_url(url, Path("/")),
        lambda: open_store(url, StoreOptions(), SystemClock(), SystemIds()),
        lambda: migrate_store(url, SystemClock(), SystemIds()),
    ):
        with pytest.raises(ConfigurationError) as caught:
            use()
        assert caught.value.code == "invalid_store"
        assert "secret" not in str(caught.value)


def test_a_resolved_url_is_migrated_and_opened(tmp_path: Path) -> None:
    url = resolve_url("sqlite:///jobs.db", tmp_path)
    result = migrate_store(url, SystemClock(), SystemIds())
    assert result is not None
    store = open_store(url, StoreOptions(), SystemClock(), SystemIds())
    try:
        store.check()
        assert store.description == f"sqlite {tmp_path}/jobs.db (wal, synchronous=full)"
    finally:
        store.close()


def test_a_store_in_memory_needs_no_migration() -> None:
    assert migrate_store("memory://", SystemClock(), SystemIds()) is None
