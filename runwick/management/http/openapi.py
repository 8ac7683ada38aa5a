"""The API's OpenAPI 3.1 document, made from the table of routes and the types it names, so that it cannot say anything
else than what is served."""

import http
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec
from msgspec import inspect

from runwick.management.web.antiforgery import HEADER
from runwick.management.web.refusals import ErrorBody
from runwick.management.web.routes import Access, Kind, Route, Table
from runwick.version import __version__

_REF: Final = "#/components/schemas/{name}"
_PARAMETER: Final = re.compile(r"\{(\w+)(:path)?\}")

_ALWAYS: Final = (400, 401, 403, 429, 500, 503)
_NAMED: Final = (404,)
"""Where the path names something."""
_CHANGED: Final = (408, 409, 504)
"""Where something is changed or revealed."""


def document(table: Table, mount: str) -> dict[str, Any]:
    """The document of a table, as plain objects.

    Args:
        table: its routes.
        mount: the path under which they are served, such as ``/runwick/api``.
    """
    types = [each for route in table for each in (route.query, route.body, route.answer) if each is not None]
    schemas, components = msgspec.json.schema_components([*types, ErrorBody], ref_template=_REF)
    of_type = {repr(each): schema for each, schema in zip([*types, ErrorBody], schemas, strict=True)}
    paths = {
        _PARAMETER.sub(r"{\1}", path): {
            method.lower(): _operation(route, of_type, components) for method, route in methods.items()
        }
        for path, methods in table.by_path.items()
    }
    queries = {route.query.__name__ for route in table}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Runwick management",
            "version": __version__,
            "description": "Reads and controls jobs, queues and limits of one application, with the caller's grants.",
        },
        "servers": [{"url": mount or "/"}],
        "security": [{"basic": []}, {"bearer": []}, {"session": []}],
        "paths": paths,
        "components": {
            "schemas": {name: schema for name, schema in components.items() if name not in queries},
            "securitySchemes": {
                "basic": {"type": "http", "scheme": "basic"},
                "bearer": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": "runwick_session"},
            },
        },
    }


def _operation(route: Route, of_type: Mapping[str, Any], components: Mapping[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": _operation_id(route),
        "summary": route.summary,
        "description": f"Needs {_rule(route)}.",
        "parameters": [*_outer_parameters(route), *_query_parameters(route, of_type, components)],
        "responses": {
            "200": {"description": "Done", "content": _json(of_type[repr(route.answer)])},
            **_errors(route, of_type[repr(ErrorBody)]),
        },
    }
    if route.body is not None:
        operation["requestBody"] = {"required": True, "content": _json(of_type[repr(route.body)])}
    return operation


def _rule(route: Route) -> str:
    if route.needs is Access.SIGNED_IN:
        return "no permission, but somebody who is signed in"
    return " or ".join(sorted(route.permissions))


def _outer_parameters(route: Route) -> Iterable[dict[str, Any]]:
    for name, is_path in _PARAMETER.findall(route.path):
        schema: dict[str, Any] = {"type": "string", "minLength": 1}
        if name == "job_id":
            schema["format"] = "uuid"
        parameter: dict[str, Any] = {"name": name, "in": "path", "required": True, "schema": schema}
        if is_path:
            parameter["description"] = "A slash in it is written %2F."
        yield parameter
    if route.kind is not Kind.READ:
        said = "A token of GET /v1/antiforgery; browsers and Basic clients need it"
        yield {"name": HEADER, "in": "header", "required": False, "schema": {"type": "string"}, "description": said}


def _query_parameters(
    route: Route, of_type: Mapping[str, Any], components: Mapping[str, Any]
) -> Iterable[dict[str, Any]]:
    name = of_type[repr(route.query)]["$ref"].rpartition("/")[2]
    described = inspect.type_info(route.query)
    assert isinstance(described, inspect.StructType)
    for field in described.fields:
        schema = components[name]["properties"][field.encode_name]
        # A parameter that is not given is absent; no spelling of it is null.
        kinds = [each for each in schema.get("anyOf", []) if each != {"type": "null"}]
        plain = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
        yield {
            "name": field.encode_name,
            "in": "query",
            "required": field.required,
            "schema": {**plain, **kinds[0]} if len(kinds) == 1 else schema,
        }


def _errors(route: Route, schema: Mapping[str, Any]) -> dict[str, Any]:
    is_named = _PARAMETER.search(route.path) is not None
    statuses = (*_ALWAYS, *(_NAMED if is_named else ()), *(_CHANGED if route.kind is not Kind.READ else ()))
    return {
        str(status): {"description": http.HTTPStatus(status).phrase, "content": _json(schema)}
        for status in sorted(statuses)
    }


def _json(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _operation_id(route: Route) -> str:
    """Such as ``postJobsCancel``: stable, one for each row."""
    words = re.findall(r"[A-Za-z]+", _PARAMETER.sub(r"\1", route.path).removeprefix("/v1"))
    return route.method.lower() + "".join(word[:1].upper() + word[1:] for word in words)
