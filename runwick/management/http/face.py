"""How the API writes: every answer and every refusal is one JSON object."""

from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from runwick.management.web.calls import Call
from runwick.management.web.headers import API_POLICY
from runwick.management.web.refusals import Refusal

_MEDIA_TYPE: Final = "application/json"


class JsonFace:
    """The API's face."""

    policy = API_POLICY
    takes_forms = False

    def answer(self, call: Call, body: Any) -> Response:
        """The body as JSON."""
        return Response(msgspec.json.encode(body), media_type=_MEDIA_TYPE)

    def refuse(self, request: Request, refusal: Refusal, call: Call | None) -> Response:
        """The refusal as `ErrorBody`."""
        text = msgspec.json.encode(refusal.body)
        return Response(text, refusal.status, headers=refusal.headers, media_type=_MEDIA_TYPE)
