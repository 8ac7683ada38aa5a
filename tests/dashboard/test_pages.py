"""The pages as they come over the wire: who may open what, what forms do without any script, and what is never in
them."""

import contextlib
import html
import re
import time
import uuid
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from urllib.parse import quote

import msgspec
import pytest

from runwick.management.bodies import JobDetailBody, OverviewBody
from runwick.management.dashboard import dashboard
from runwick.management.dashboard.mount import POLICY
from runwick.management.desk import Desk
from runwick.management.permissions import Caller
from runwick.management.web import Management
from tests.dashboard.conftest import Visitor
from tests.dashboard.darkroom import MARKER
from tests.dashboard.seeding import PATIENCE_S, Seeded
from tests.dashboard.serving import MOUNT, CookieScheme, granted, served

Visit = Callable[[str], Visitor]

NAMES = ["Overview", "Jobs", "Types", "Queues", "Workers", "Pools", "Limits", "Audit", "Settings"]
PATHS = ["/", "/jobs", "/types", "/queues", "/workers", "/pools", "/scopes", "/audit", "/settings"]
MISSING = "0199c0de-0000-7000-8000-000000000000"


class Markup(HTMLParser):
    """What a browser makes of a page: its elements with their attributes, and the text that is seen."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.seen = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.seen += data

    def check(self) -> None:
        """Nothing inline, nothing that came from outside as markup, nothing that turns the direction of writing."""
        for tag, attributes in self.elements:
            assert tag not in ("img", "style", "iframe", "object", "base")
            assert tag != "script" or set(attributes) == {"type", "src"}
            assert not any(name == "style" or name.startswith("on") for name in attributes)
            for name, value in attributes.items():
                is_hidden = tag == "input" and attributes.get("type") == "hidden" and name == "value"
                assert is_hidden or "\u202e" not in (value or "")
                assert name not in ("href", "src", "action") or not (value or "").lower().startswith(("java", "data"))
        assert "\u202e" not in self.seen


def heading(text: str) -> str:
    found = re.search(r"<h1>(.*?)</h1>", text, re.S)
    assert found is not None
    return html.unescape(re.sub(r"<[^>]*>", "", found[1]))


@pytest.mark.parametrize(
    ("who", "closed"),
    [
        ("viewer", {"/audit"}),
        ("operator", {"/audit"}),
        ("administrator", {"/audit"}),
        ("everything", set[str]()),
        ("archivist", {"/workers", "/pools", "/scopes", "/audit", "/settings"}),
        ("nobody", set(PATHS)),
    ],
)
def test_the_navigation_shows_what_may_be_opened_and_the_rest_is_forbidden(
    visit: Visit, who: str, closed: set[str]
) -> None:
    visitor = visit(who)
    for name, path in zip(NAMES, PATHS, strict=True):
        page = visitor.get(path)
        assert page.status_code == (403 if path in closed else 200), path
        if page.status_code == 200:
            assert heading(page.text) == name
            links = re.findall(rf'<li><a href="{MOUNT}(/[^"]*)"', page.text)
            assert links == [each for each in PATHS if each not in closed]


def test_every_page_says_whose_it_is_to_whoever_has_signed_in(visit: Visit) -> None:
    for who, path in (("archivist", "/"), ("archivist", "/settings"), ("nobody", "/jobs"), ("viewer", "/jobs?x=1")):
        text = visit(who).get(path).text
        assert re.search(r"<title>[^<]* · darkroom · Darkroom</title>", text), path
        assert "<bdi>darkroom</bdi>" in text
    assert "darkroom" not in visit("stranger").get("/").text


def test_what_is_refused_keeps_the_navigation(visit: Visit) -> None:
    for path, status in (("/audit", 403), ("/jobs?x=1", 400), ("/jobs?limit=0", 400)):
        page = visit("operator").get(path)
        assert page.status_code == status
        assert f'<li><a href="{MOUNT}/queues"' in page.text
    assert 'aria-label="Pages"' not in visit("stranger").get("/audit").text


def test_without_a_sign_in_there_is_nothing(visit: Visit) -> None:
    stranger = visit("stranger")
    for path in [*PATHS, f"/jobs/{MISSING}"]:
        page = stranger.get(path)
        assert (page.status_code, heading(page.text)) == (401, "Please sign in")
        assert "photo" not in page.text


def test_every_page_is_kept_nowhere_and_holds_nothing_inline(visit: Visit, shop: Seeded) -> None:
    visitor = visit("everything")
    for path in [*PATHS, "/types/photo.mount", f"/jobs/{shop.torn}", "/queues/prints", "/nowhere"]:
        page = visitor.get(path)
        assert page.headers["Content-Security-Policy"] == POLICY
        assert page.headers["Cache-Control"] == "no-store"
        Markup(page.text).check()


def test_what_is_hidden_is_answered_as_what_is_missing(visit: Visit, shop: Seeded) -> None:
    """Byte for byte, but for the tokens that no two pages share."""
    visitor = visit("archivist")
    for hidden, missing in (
        (f"/jobs/{shop.torn}", f"/jobs/{MISSING}"),
        ("/queues/prints", "/queues/nothing"),
        ("/types/photo.mount", "/types/photo.nothing"),
    ):
        pages = [visitor.get(path) for path in (hidden, missing)]
        assert [page.status_code for page in pages] == [404, 404]
        bare = [re.sub(r'name="(antiforgery|back)" value="[^"]*"', "", page.text) for page in pages]
        assert bare[0] == bare[1]
    assert visitor.get(f"/jobs/{shop.running}").status_code == 200


def test_a_list_holds_only_what_is_within_reach(visit: Visit, shop: Seeded) -> None:
    text = visit("archivist").get("/jobs").text
    assert shop.running in text
    assert "photo" not in text
    assert "prints" not in visit("archivist").get("/queues").text


def test_the_overview_tells_of_executors_only_to_whoever_may_see_them(visit: Visit) -> None:
    seen, unseen = (visit(who).get("/").text for who in ("viewer", "archivist"))
    for text in (seen, unseen):
        assert re.search(r"cores on average in the last [^<]+", text)
        assert '<th scope="col" class="number">Held by a limit</th>' in text
    assert "of 3 executors busy on 1 worker" in seen
    assert "executors busy" not in unseen


def test_a_type_shows_what_limits_the_application_to_who_may_see_all_of_it(visit: Visit) -> None:
    seen, unseen = (visit(who).get("/types/photo.mount").text for who in ("viewer", "archivist"))
    assert "What limits the application now" in seen
    assert "store: how long claims and settlements take is not recorded" in html.unescape(re.sub(r"<[^>]*>", "", seen))
    assert "What limits the application now" not in unseen


def test_filters_stand_in_the_address_and_in_the_form(visit: Visit, shop: Seeded) -> None:
    text = visit("viewer").get("/jobs?state=failed&name=photo.mount&code=frame_missing&from=2020-01-01T00:00").text
    assert text.count("/types/photo.mount") == 1
    assert "<option selected>failed</option>" in text
    assert 'value="frame_missing"' in text
    assert 'value="2020-01-01T00:00"' in text
    assert shop.torn not in text


def test_filters_suggest_what_the_reader_may_see(visit: Visit) -> None:
    def suggested(who: str, path: str) -> set[str]:
        text = visit(who).get(path).text
        return set(re.findall(r'<option value="([^"]*)"></option>', text))

    assert suggested("viewer", "/jobs") >= {"photo.develop", "photo.mount", "prints", "mail", "archive"}
    assert suggested("archivist", "/jobs") == {"archive.hold", "archive"}
    assert suggested("viewer", "/jobs?limit=100") == set()  # as the walk over all that match reads it


def test_the_next_page_goes_on_and_a_cursor_is_its_readers_own(visit: Visit) -> None:
    viewer = visit("viewer")
    first = viewer.get("/jobs").text
    assert len(re.findall(r'href="[^"]*/jobs/[0-9a-f-]{36}"', first)) == 50
    following = re.search(r'rel="next" href="([^"]*)"', first)
    assert following is not None
    path = html.unescape(following[1]).removeprefix(MOUNT)
    second = viewer.get(path).text
    jobs = [set(re.findall(r"/jobs/([0-9a-f-]{36})", text)) for text in (first, second)]
    assert len(jobs[1]) == 50
    assert not jobs[0] & jobs[1]
    assert visit("operator").get(path).status_code == 400


@pytest.mark.parametrize(
    "path",
    [
        f"/queues/{quote(MARKER)}x",
        f"/types/{quote(MARKER)}x",
        f"/jobs?name={quote(MARKER)}",
        f"/jobs?state={quote('<script>alert(1)</script>')}",
        f"/jobs?{quote(MARKER)}=1",
        f"/jobs?from={quote(MARKER)}",
        f"/jobs/{quote(MARKER)}",
        f"/audit?actor={quote(MARKER)}",
        f"/{quote(MARKER)}",
        f"/static/{quote(MARKER)}/main.js",
        f"/queues?notice={quote(MARKER)}",
    ],
)
def test_what_an_address_says_is_never_markup(visit: Visit, path: str) -> None:
    page = visit("everything").get(path)
    assert page.status_code in (200, 400, 404)
    Markup(page.text).check()


def test_what_an_application_says_is_never_markup(visit: Visit, shop: Seeded) -> None:
    visitor = visit("everything")
    paths = [*PATHS, f"/jobs/{shop.hostile}", f"/jobs/{shop.torn}", f"/types/{quote(MARKER, safe='')}"]
    for path in [*paths, f"/queues/{quote(MARKER, safe='')}"]:
        page = visitor.get(path)
        assert page.status_code == 200, path
        Markup(page.text).check()


def reveal(visitor: Visitor, job_id: str, what: str, nth: int = 0) -> str:
    forms = f"/jobs/{job_id}/reveal"
    for at in range(20):
        fields = visitor.fields(f"/jobs/{job_id}", forms, at)
        if fields["what"] == what and nth == 0:
            page = visitor.post(forms, **fields, reason=MARKER)
            assert page.status_code == 200, page.text
            return page.text
        nth -= fields["what"] == what
    raise AssertionError(f"no form reveals {what}")


def test_nothing_private_is_shown_before_it_is_asked_for_and_then_it_is_in_the_trail(
    visit: Visit, shop: Seeded
) -> None:
    visitor = visit("everything")
    assert "it tore" not in visitor.get(f"/jobs/{shop.torn}").text
    shown = reveal(visitor, shop.torn, "error")
    assert all(part in shown for part in ("ValueError", "it tore: &lt;img src=x", "Traceback"))
    Markup(shown).check()
    assert "reveal error" in visitor.get(f"/audit?job={shop.torn}").text
    assert "Last log lines" in reveal(visitor, shop.crashed, "black_box")
    assert "roll 24" in html.unescape(reveal(visitor, shop.succeeded, "payload"))
    assert "strips" in html.unescape(reveal(visitor, shop.succeeded, "result"))


def test_a_death_shows_its_cause_and_offers_the_black_box_alone(visit: Visit, shop: Seeded) -> None:
    crashed, torn = (visit("everything").get(f"/jobs/{each}").text for each in (shop.crashed, shop.torn))
    assert "killed by SIGSEGV" in crashed
    assert ('id="black_box-' in crashed, 'id="error-' in crashed) == (True, False)
    assert ('id="black_box-' in torn, 'id="error-' in torn) == (False, True)


def test_a_retry_says_how_often_it_may_run_and_is_told_in_the_history(visit: Visit, shop: Seeded) -> None:
    operator, job_id = visit("operator"), shop.waiting[6]
    assert "with its full budget again: up to 2 executions." in operator.get(f"/jobs/{shop.torn}").text
    for action in ("cancel", "retry"):
        fields = operator.fields(f"/jobs/{job_id}", f"/jobs/{action}")
        assert operator.post(f"/jobs/{action}", **fields, reason=f"{action}, <b>please</b>").status_code == 303
    told = visit("everything").get(f"/jobs/{job_id}").text
    assert "<bdi>Retried by operator</bdi>" in told
    assert "retry, &lt;b&gt;please&lt;/b&gt;" in told
    assert "<bdi>Cancelled</bdi>" in told
    untold = visit("viewer").get(f"/jobs/{job_id}").text
    assert "<bdi>Generation 2 was opened</bdi>" in untold
    assert "please" not in untold


@contextlib.contextmanager
def shown_by(desk: Desk) -> Iterator[Visitor]:
    """Somebody who may look at the pages of that desk."""
    with (
        served(dashboard(Management(desk, schemes=[CookieScheme()], grants=granted))) as address,
        contextlib.closing(Visitor(address, "viewer")) as visitor,
    ):
        yield visitor


def test_what_waits_behind_a_limit_counts_as_waiting(shop: Seeded, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = shop.rw.desk
    ask = desk.overview

    async def overview(caller: Caller) -> OverviewBody:
        at = "2026-11-29T12:00:00.000Z"
        return msgspec.structs.replace(
            await ask(caller), due=2, blocked=1_500, later=7, oldest_due_at=at, as_of="2026-11-29T12:02:05.000Z"
        )

    monkeypatch.setattr(desk, "overview", overview)
    with shown_by(desk) as visitor:
        text = visitor.get("/").text
    assert re.search(r'<dt>Waiting</dt>\s*<dd class="value">1,502</dd>', text)
    assert "2 due, 7 later, 1,500 held by a limit; the oldest due for 2 min 5 s" in text


def test_why_a_job_failed_says_what_to_do_where_the_reason_is_one_of_ours(visit: Visit, shop: Seeded) -> None:
    viewer = visit("viewer")
    assert "Mend the cause, then retry the job by hand." in viewer.get(f"/jobs/{shop.torn}").text
    assert "by hand" not in viewer.get(f"/jobs/{shop.succeeded}").text


def test_who_may_not_read_errors_is_told_what_that_needs(visit: Visit, shop: Seeded) -> None:
    needs = "needs the permission Jobs.ReadError"
    assert needs in visit("operator").get(f"/jobs/{shop.torn}").text
    assert needs not in visit("everything").get(f"/jobs/{shop.torn}").text
    assert needs not in visit("operator").get(f"/jobs/{shop.succeeded}").text


def test_what_a_dead_worker_said_last_is_not_what_its_job_does_now(
    shop: Seeded, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = shop.rw.desk
    ask, alive = desk.job, True

    async def job(caller: Caller, job_id: str) -> JobDetailBody:
        body = await ask(caller, job_id)
        assert body.running is not None
        return msgspec.structs.replace(body, running=msgspec.structs.replace(body.running, worker_alive=alive))

    monkeypatch.setattr(desk, "job", job)
    with shown_by(desk) as visitor:
        path = f"/jobs/{shop.running}"
        assert "What it does now" in visitor.get(path).text
        alive = False
        text = visitor.get(path).text
    assert "What it does now" not in text
    assert "Its worker is gone; another one takes the job up" in text


def test_a_running_run_shows_its_stack_when_it_is_asked_for(visit: Visit, shop: Seeded) -> None:
    visitor = visit("everything")
    path = f"/jobs/{shop.running}"
    page = visitor.post(f"{path}/look", **visitor.fields(path, f"{path}/look"))
    assert page.headers["Location"] == f"{MOUNT}{path}?notice=look"
    until_s = time.monotonic() + PATIENCE_S
    while "in hold" not in (shown := reveal(visitor, shop.running, "stack")):
        assert time.monotonic() < until_s, shown
        time.sleep(0.1)


def test_a_revealed_payload_keeps_its_numbers_as_they_were_written(visit: Visit, shop: Seeded) -> None:
    shown = html.unescape(reveal(visit("everything"), shop.hostile, "payload"))
    assert '"number": 1e400' in shown


def test_whoever_may_not_reveal_sees_no_button_and_is_refused(visit: Visit, shop: Seeded) -> None:
    operator = visit("operator")
    assert "/reveal" not in operator.get(f"/jobs/{shop.torn}").text
    token = operator.fields("/", "/theme")["antiforgery"]
    page = operator.post(f"/jobs/{shop.torn}/reveal", antiforgery=token, command=uuid.uuid4(), what="payload")
    assert page.status_code == 403


def test_a_run_is_cancelled_once_however_often_the_form_is_sent(visit: Visit, shop: Seeded) -> None:
    operator, job_id = visit("operator"), shop.waiting[0]
    fields = operator.fields(f"/jobs/{job_id}", "/jobs/cancel")
    for _ in range(2):
        page = operator.post("/jobs/cancel", **fields, reason="not needed")
        assert page.status_code == 303
        assert page.headers["Location"] == f"{MOUNT}/jobs/{job_id}?notice=cancel"
    assert "It is cancelled and will not run." in operator.get(f"/jobs/{job_id}?notice=cancel").text
    trail = visit("everything").get(f"/audit?job={job_id}").text
    assert trail.count("<tr><td>") == 1
    assert "not needed" in trail


def test_what_has_changed_since_is_left_alone_and_explained(visit: Visit, shop: Seeded) -> None:
    operator, job_id = visit("operator"), shop.waiting[1]
    fields = operator.fields(f"/jobs/{job_id}", "/jobs/cancel")
    assert operator.post("/jobs/cancel", **fields).status_code == 303
    page = operator.post("/jobs/cancel", **{**fields, "command": str(uuid.uuid4())})
    assert page.status_code == 409
    assert heading(page.text) == "Nothing was done"
    assert f'href="{MOUNT}/jobs/{job_id}">Look again</a>' in page.text


def test_several_runs_at_once_and_what_was_refused(visit: Visit, shop: Seeded) -> None:
    operator = visit("operator")
    token = operator.fields("/jobs", "/jobs/cancel")["antiforgery"]
    targets = [f"{job_id}:1:1" for job_id in shop.waiting[2:4]] + [f"{MISSING}:1:1", f"{shop.torn}:1:1"]
    page = operator.post("/jobs/cancel", antiforgery=token, command=uuid.uuid4(), target=targets)
    assert heading(page.text) == "Cancel: 2 of 4 done"
    assert re.findall(r'data-answer="([^"]*)"', page.text) == ["done", "done", "not_found", "stale_revision"]


@pytest.mark.parametrize("targets", [[], ["nonsense"], [f"{MISSING}:1:x"], [f"{MISSING}:1:1"] * 101])
def test_a_selection_that_cannot_be_is_refused(visit: Visit, targets: list[str]) -> None:
    operator = visit("operator")
    token = operator.fields("/jobs", "/jobs/cancel")["antiforgery"]
    page = operator.post("/jobs/cancel", antiforgery=token, command=uuid.uuid4(), target=targets)
    assert page.status_code == 400
    assert heading(page.text) == "That did not work"


def test_a_form_without_the_callers_token_does_nothing(visit: Visit, shop: Seeded) -> None:
    operator, job_id = visit("operator"), shop.waiting[5]
    fields = operator.fields(f"/jobs/{job_id}", "/jobs/cancel")
    others = visit("administrator").fields(f"/jobs/{job_id}", "/jobs/cancel")["antiforgery"]
    for token in ("", "x", others):
        assert operator.post("/jobs/cancel", **{**fields, "antiforgery": token}).status_code == 403
    assert "pending" in operator.get(f"/jobs/{job_id}").text


def test_a_queue_is_paused_and_resumed_from_its_page(visit: Visit) -> None:
    operator = visit("operator")
    for action, state in (("pause", "paused"), ("resume", "open")):
        fields = operator.fields("/queues/mail", f"/queues/{action}")
        page = operator.post(f"/queues/{action}", **fields, reason="post strike")
        assert page.headers["Location"] == f"{MOUNT}/queues/mail?notice={action}"
        assert f">{state}</span>" in operator.get("/queues/mail").text
        stale = operator.post(f"/queues/{action}", **{**fields, "command": str(uuid.uuid4())})
        assert stale.status_code == 409
        assert f'href="{MOUNT}/queues/mail">Look again</a>' in stale.text
    assert "/queues/pause" not in visit("viewer").get("/queues/mail").text


def test_a_capacity_is_set_by_whoever_may(visit: Visit) -> None:
    administrator = visit("administrator")
    fields = administrator.fields("/scopes?kind=queue", "/scopes/capacity")
    assert administrator.post("/scopes/capacity", **fields, capacity=7).status_code == 303
    assert "1 of 7" in administrator.get("/scopes?kind=queue").text
    for capacity in ("0", "-1", "many", ""):
        fields = administrator.fields("/scopes?kind=queue", "/scopes/capacity")
        assert administrator.post("/scopes/capacity", **fields, capacity=capacity).status_code == 400
    assert "/scopes/capacity" not in visit("operator").get("/scopes").text


def test_files_are_kept_for_good_under_the_address_of_their_content_alone(visit: Visit) -> None:
    visitor = visit("stranger")
    addresses = re.findall(r'(?:href|src)="([^"]*/static/[^"]*)"', visitor.get("/").text)
    assert len(addresses) == 3
    for address in addresses:
        path = address.removeprefix(MOUNT)
        file = visitor.get(path)
        assert file.status_code == 200
        assert file.headers["Cache-Control"] == "public, max-age=31536000, immutable"
        digest = path.split("/")[2]
        assert visitor.get(path.replace(digest, digest[::-1])).status_code == 404
    assert visitor.get(f"/static/{digest}/../mount.py").status_code == 404


@pytest.mark.parametrize(
    ("back", "place"),
    [("/jobs?state=failed", "/jobs?state=failed"), ("//evil.example", "/"), ("/\\evil.example", "/"), ("https:x", "/")],
)
def test_the_theme_is_kept_and_leads_back_to_this_site_alone(visit: Visit, back: str, place: str) -> None:
    viewer = visit("viewer")
    fields = viewer.fields("/jobs", "/theme")
    page = viewer.post("/theme", **{**fields, "back": back}, theme="dark")
    assert page.headers["Location"] == f"{MOUNT}{place}"
    assert '<html lang="en" data-theme="dark">' in viewer.get("/").text
    viewer.post("/theme", **fields, theme="")
    assert '<html lang="en">' in viewer.get("/").text


def test_the_sign_out_button_posts_to_the_hosts_own_route(visit: Visit) -> None:
    assert '<form method="post" action="/away"><button' in visit("viewer").get("/").text
