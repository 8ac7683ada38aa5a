"""One server's API, as it is asked: signed in, a change with an antiforgery token where one is needed, and sent again
under the same command id when its answer is lost.

    send ── answered ───────────────────────────────────────────▶ body, or `Rejected`
      ├──── not connected ──────────────────────────────────────▶ `Unreachable`: nothing was sent
      └──── answer lost ── up to 3 times more, within 30 s ─────▶ answered, or `ControlOutcomeUnknown`
"""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import httpx
import msgspec

from runwick.cli.answers import ErrorBody
from runwick.cli.contexts import Context, is_loopback
from runwick.cli.failures import Rejected, Unreachable, error_with
from runwick.contracts.errors import ControlOutcomeUnknown, InvalidArgument
from runwick.version import __version__

T = TypeVar("T")
Query = Sequence[tuple[str, str]]

CONNECT_S: Final = 5.0
ANSWER_S: Final = 10.0
WITHIN_S: Final = 30.0
"""How long a change is sent again."""
PAUSES_S: Final = (0.2, 1.0, 3.0)
"""Before each time that it is sent again."""

_WRONG_INPUT: Final = frozenset({400, 413, 415})
_LOST: Final = frozenset({500, 502, 504})
"""Answers after which a change may have been made."""


class _Token(msgspec.Struct, rename="camel"):
    token: str
    header_name: str


class RemoteLink:
    """One server, for one command.

    Args:
        context: where it is and how to sign in.
        secret: password or token.

    Raises:
        InvalidArgument: there is no such host (code ``invalid_argument``).
    """

    def __init__(self, context: Context, secret: str) -> None:
        try:
            base = httpx.URL(context.url.rstrip("/") + "/v1")
        except httpx.InvalidURL as error:
            raise InvalidArgument("invalid_argument", f"the URL cannot be asked: {error}") from None
        on_this_machine = is_loopback(urlsplit(context.url).hostname or "")
        self._is_basic = context.auth == "basic"
        self._token: Mapping[str, str] | None = None
        self._client = httpx.AsyncClient(
            base_url=base,
            auth=httpx.BasicAuth(context.user or "", secret) if self._is_basic else None,
            headers={
                "User-Agent": f"runwick/{__version__}",
                **({} if self._is_basic else {"Authorization": f"Bearer {secret}"}),
            },
            timeout=httpx.Timeout(ANSWER_S, connect=CONNECT_S),
            follow_redirects=False,
            trust_env=not on_this_machine,  # no proxy stands between a machine and itself
        )

    async def get(self, path: str, of: type[T], query: Query = ()) -> T:
        """What is there.

        Raises:
            Unreachable: nobody answers (code ``connection_failed``).
            Rejected: the server says no.
        """
        return _body(await self.answer(path, query), of)

    async def answer(self, path: str, query: Query = ()) -> httpx.Response:
        """The answer to a read, raising as `get`."""
        try:
            response = await self._client.get(path, params=list(query))
        except httpx.HTTPError as error:
            raise _unreachable(error) from None
        _check(response)
        return response

    async def greet(self, path: str) -> httpx.Response:
        """The answer to a read of what every API has, raising as `get`; where it is not, there is no API."""
        try:
            return await self.answer(path)
        except Rejected as refused:
            if refused.code != "not_found":
                raise
        message = "there is no API at that address; it is the path under which the API is mounted, without /v1"
        raise Unreachable("connection_failed", message)

    async def post(self, path: str, of: type[T], body: Mapping[str, Any], command_id: str) -> T:
        """Have something changed or revealed, once.

        Args:
            path: below ``/v1``.
            of: the answer's type.
            body: the members, without ``commandId``.
            command_id: by which the server knows it when it comes again.

        Raises:
            Unreachable: nobody answers, and nothing was sent.
            Rejected: the server says no; nothing was done.
            ControlOutcomeUnknown: it may or may not have been done.
        """
        content = msgspec.json.encode({**body, "commandId": command_id})
        headers = {"Content-Type": "application/json", **await self._antiforgery()}
        lost = ""
        async for _ in _tries():
            try:
                response = await self._client.post(path, content=content, headers=headers)
            except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError) as error:
                if not lost:
                    raise _unreachable(error) from None
                continue
            except httpx.HTTPError as error:
                lost = lost or type(error).__name__
                continue
            if response.status_code in _LOST or (lost and response.status_code in (429, 503)):
                lost = lost or f"the server answered {response.status_code}"
                continue
            _check(response)
            return _body(response, of)
        message = f"the command may or may not have been done: its answer was lost ({lost})"
        raise ControlOutcomeUnknown("outcome_unknown", message, command_id)

    async def aclose(self) -> None:
        """Close what is open."""
        await self._client.aclose()

    async def _antiforgery(self) -> Mapping[str, str]:
        """The header without which a password changes nothing, for a browser sends passwords by itself."""
        if not self._is_basic:
            return {}
        if self._token is None:
            given = _body(await self.greet("/antiforgery"), _Token)
            self._token = {given.header_name: given.token}
        return self._token


async def _tries() -> Any:
    """Once at once, then again after each pause, as long as there is time."""
    until_s = time.monotonic() + WITHIN_S
    yield None
    for pause_s in PAUSES_S:
        if time.monotonic() + pause_s > until_s:
            return
        await asyncio.sleep(pause_s)
        yield None


def _check(response: httpx.Response) -> None:
    """Go on only with a success.

    Raises:
        Rejected: it is none.
        Unreachable: whoever answers is no such API.
    """
    if response.is_success:
        return
    try:
        error = msgspec.json.decode(response.content, type=ErrorBody).error
    except msgspec.MsgspecError:
        moved = ", which leads elsewhere; give the address that it leads to" if response.is_redirect else ""
        message = f"what answers there is no Runwick API: status {response.status_code}{moved}"
        raise Unreachable("connection_failed", message) from None
    if (wait := response.headers.get("Retry-After", "")).isdigit():
        error = msgspec.structs.replace(error, message=f"{error.message}; try again in {wait} s")
    raise Rejected(error, is_wrong_input=response.status_code in _WRONG_INPUT)


def _body(response: httpx.Response, of: type[T]) -> T:
    try:
        return msgspec.json.decode(response.content, type=of)
    except msgspec.MsgspecError as error:
        message = f"the answer is not as this release of the API has it ({error}); 'runwick doctor' compares releases"
        raise Rejected(error_with("version_mismatch", message)) from None


def _unreachable(error: httpx.HTTPError) -> Unreachable:
    causes = [str(each) for each in _causes(error) if str(each)]
    said = causes[0] if causes else type(error).__name__
    return Unreachable("connection_failed", f"no answer: {said}")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__
