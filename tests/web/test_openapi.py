"""The document says what is served, and what is served keeps to the document."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import schemathesis
from schemathesis.config import GenerationConfig, ProjectConfig, ProjectsConfig, SchemathesisConfig
from schemathesis.engine import events, from_schema
from schemathesis.generation import GenerationMode

from runwick import Runwick
from runwick.management.http import api
from runwick.management.http.openapi import document
from runwick.management.http.table import TABLE
from runwick.management.web.routes import Access
from tests.app.running import fail, succeed
from tests.web.ground import Client, Pack, Ship, Site, bearer, shop

EXAMPLES: Final = 50
"""Of each operation."""


@pytest.fixture
def shown(site: Site) -> dict[str, Any]:
    answer: dict[str, Any] = Client(api(site.management), bearer()).get("/v1/openapi.json").json()
    return answer


def test_it_is_valid_and_of_version_3_1(shown: dict[str, Any]) -> None:
    assert shown["openapi"].startswith("3.1.")
    schemathesis.openapi.from_dict(shown).validate()


def test_it_has_every_route_with_its_permission(shown: dict[str, Any]) -> None:
    operations = {
        (method.upper(), path): operation
        for path, methods in shown["paths"].items()
        for method, operation in methods.items()
    }
    assert len(operations) == len(list(TABLE))
    for route in TABLE:
        operation = operations[route.method, route.path.replace(":path}", "}")]
        for permission in route.permissions:
            assert permission in operation["description"]
        assert route.needs is not Access.SIGNED_IN or "signed in" in operation["description"]
    ids = [operation["operationId"] for operation in operations.values()]
    assert len(set(ids)) == len(ids)


def test_every_reference_leads_somewhere_and_nothing_is_left_over(shown: dict[str, Any]) -> None:
    found = set(_references(shown))
    assert found == {f"#/components/schemas/{name}" for name in shown["components"]["schemas"]}


def test_it_knows_where_it_is_mounted() -> None:
    assert document(TABLE, "/runwick/api")["servers"] == [{"url": "/runwick/api"}]
    assert document(TABLE, "")["servers"] == [{"url": "/"}]


@pytest.mark.timeout(600)  # it takes half a minute of processor time
def test_schemathesis_finds_nothing(tmp_path: Path) -> None:
    """All phases, good input and bad. The one check that is off wants everything to be taken that the schemas allow;
    they cannot say which text is a cursor of ours, or that 1.0 is no whole number."""
    rw = shop(tmp_path)
    _fill(rw)
    site = Site(rw)
    generation = GenerationConfig(
        modes=[*GenerationMode],
        max_examples=EXAMPLES,
        deterministic=True,
        database="none",
    )
    project = ProjectConfig.from_dict(
        {
            "checks": {"positive_data_acceptance": {"enabled": False}},
            "auth": {"openapi": {"bearer": {"bearer": "token-of-robot"}}},
        }
    )
    project.generation = generation
    config = SchemathesisConfig(seed=1, projects=ProjectsConfig(default=project))
    schema = schemathesis.openapi.from_asgi("/v1/openapi.json", api(site.management), config=config, headers=bearer())
    failures, statuses, phases = [], Counter[int](), set()
    for event in from_schema(schema).execute():
        if isinstance(event, events.NonFatalError | events.FatalError):
            failures.append(str(event))
        if isinstance(event, events.PhaseFinished):
            phases.add((event.phase.name.value, event.status.value))
        if isinstance(event, events.ScenarioFinished):
            failures += _failures(event)
            statuses.update(each.response.status_code for each in event.recorder.interactions.values() if each.response)
    rw.close()
    assert failures == []
    assert len(phases) >= 4
    assert not [status for status in statuses if status >= 500]
    assert {200, 400, 401, 404, 405, 409} <= set(statuses)


def _fill(rw: Runwick) -> None:
    for number in range(3):
        rw.dispatch(Pack(number=number))
    succeed(rw)
    fail(rw, "no_stock")
    rw.dispatch(Ship(), tenant="acme")


def _failures(event: events.ScenarioFinished) -> Iterator[str]:
    for checks in event.recorder.checks.values():
        for check in checks:
            if (info := check.failure_info) is not None:
                yield f"{event.recorder.label}: {check.name}: {info.failure.message}: {info.code_sample}"


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        if isinstance(reference := node.get("$ref"), str):
            yield reference
        for each in node.values():
            yield from _references(each)
    elif isinstance(node, list):
        for each in node:
            yield from _references(each)
