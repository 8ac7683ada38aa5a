"""The application's side of the operators' desk."""

import datetime
import subprocess
import sys
from collections.abc import Iterator

import pytest

from runwick import DispatchOptions, InvalidArgument, Job, Runwick, WorkerOptions
from runwick.app.deskside import DeskSide


class Pack(Job):
    """Refuses what no order has, in two ways."""

    number: int = 0

    def __post_init__(self) -> None:
        if self.number < 0:
            raise ValueError("a number is not negative")
        if self.number == 13:
            raise RuntimeError("secret")


def side_of(rw: Runwick) -> DeskSide:
    side = rw.desk._side
    assert isinstance(side, DeskSide)
    return side


@pytest.fixture
def rw(monkeypatch: pytest.MonkeyPatch) -> Iterator[Runwick]:
    monkeypatch.setenv("RUNWICK_MEMORY_HARD", "2GiB")
    rw = Runwick(
        "shop", store="memory://", worker=WorkerOptions(safety_poll_interval=datetime.timedelta(milliseconds=250))
    )
    rw.job("order.pack", queue="orders", execution_timeout=datetime.timedelta(minutes=1))(Pack)
    rw.queue("spare")
    yield rw
    rw.close()


def test_it_names_what_is_declared(rw: Runwick) -> None:
    side = side_of(rw)
    assert (side.name, set(side.declared_queues()), set(side.declared_names())) == (
        "shop",
        {"orders", "spare"},
        {"order.pack"},
    )
    assert (side.time_limit_ms("order.pack"), side.time_limit_ms("order.none")) == (60_000, None)


def test_settings_say_where_each_comes_from(rw: Runwick) -> None:
    settings = {each.name: (each.value, each.source) for each in side_of(rw).settings()}
    assert settings["safety_poll_interval"] == ("250ms", "code")
    assert settings["memory_hard"] == ("2GiB", "RUNWICK_MEMORY_HARD")
    assert settings["memory_soft"] == ("none", "default")
    assert settings["lease_duration"] == ("1min", "default")
    assert settings["record_resource_usage"] == ("true", "default")
    assert settings["store"] == ("memory (gone when the process ends)", "code")


def test_a_secret_in_the_stores_url_is_no_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUNWICK_STORE", "postgresql://ann:secret@localhost/shop?application_name=secret")
    rw = Runwick("shop")
    [store] = [each for each in side_of(rw).settings() if each.name == "store"]
    assert store.source == "RUNWICK_STORE"
    assert "secret" not in str(side_of(rw).settings())
    rw.close()


@pytest.mark.parametrize(
    ("number", "message"), [(-1, "a number is not negative"), (13, "Pack refuses it: RuntimeError")]
)
def test_what_the_record_refuses_is_an_invalid_payload(rw: Runwick, number: int, message: str) -> None:
    with pytest.raises(InvalidArgument, match=message) as caught:
        side_of(rw).prepare("order.pack", f'{{"number":{number}}}'.encode(), DispatchOptions())
    assert caught.value.code == "invalid_payload"
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_desk_is_made_once_and_loads_nothing_before(rw: Runwick) -> None:
    assert rw.desk is rw.desk
    script = "import sys, runwick; runwick.Runwick('shop'); print('runwick.management.desk' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
