"""The pages in a real Chromium: nothing on the console, no report of the policy, no serious finding of axe, light and
dark, narrow and zoomed, by keyboard, with scripts and without."""

import contextlib
from collections.abc import Callable, Iterator
from urllib.parse import quote, urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from runwick import Runwick, StoreUnavailable
from runwick.management.dashboard import dashboard
from runwick.management.web import Management
from tests.dashboard.darkroom import MARKER
from tests.dashboard.seeding import CROWD, Seeded
from tests.dashboard.serving import COOKIE, CookieScheme, granted, served
from tests.dashboard.test_refusing import failing

ARGUMENTS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
]
PATIENCE_MS = 15_000
WIDE = (1280, 900)
NARROW = (360, 740)
ZOOMED = (640, 450)
"""What is left of `WIDE` at 200 %."""
REPORTING = "document.addEventListener('securitypolicyviolation', e => console.error('policy', e.violatedDirective))"

AXE = Axe()

Opens = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def opened(browser: Browser, address: str) -> Iterator[Opens]:
    """Opens a window for somebody; whatever its console says is an error at the end."""
    contexts: list[BrowserContext] = []
    said: list[str] = []

    def window(
        who: str = "everything",
        size: tuple[int, int] = WIDE,
        scheme: str = "light",
        scripts: bool = True,
        base: str = address,
        loses: bool = False,
    ) -> Page:
        """Where it `loses` answers, the browser's own words about that are none of ours."""
        context = browser.new_context(
            base_url=f"{base}/",
            viewport={"width": size[0], "height": size[1]},
            color_scheme="dark" if scheme == "dark" else "light",
            java_script_enabled=scripts,
            permissions=["clipboard-read", "clipboard-write"],
        )
        contexts.append(context)
        context.set_default_timeout(PATIENCE_MS)
        context.add_cookies([{"name": COOKIE, "value": who, "url": base}])
        context.add_init_script(REPORTING)
        page = context.new_page()

        def hear(message: ConsoleMessage) -> None:
            if not (loses and message.text.startswith("Failed to load resource")):
                said.append(f"{message.text} at {page.url}")

        page.on("console", hear)
        page.on("pageerror", lambda error: said.append(f"{error} at {page.url}"))
        return page

    yield window
    for context in contexts:
        context.close()
    assert said == []


def paths(shop: Seeded) -> list[str]:
    """Every page, with what is best and worst to see on it."""
    jobs = [f"jobs/{each}" for each in (shop.succeeded, shop.torn, shop.crashed, shop.running, shop.hostile)]
    foreign = quote(MARKER, safe="")
    lists = ["", "types", "jobs?limit=12", "queues", "workers", "pools", "scopes", "audit", "settings"]
    return [*lists, "types/photo.develop", "types/photo.mount", f"types/{foreign}", "queues/prints", *jobs]


def go(page: Page, path: str) -> None:
    response = page.goto(f"./{path}")
    assert response is not None
    assert response.status == 200, path


def serious(page: Page) -> list[str]:
    """What axe finds that is serious or worse."""
    found = AXE.run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [
        f"{each['id']}: {each['nodes'][0]['html'][:200]}" for each in found if each["impact"] in ("serious", "critical")
    ]


def overflow(page: Page) -> int:
    """Pixels by which the page is wider than its window."""
    width: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return width


@pytest.mark.parametrize(("scheme", "every"), [("light", 1), ("dark", 3)])
def test_every_page_is_clean_and_open_to_all(opened: Opens, shop: Seeded, scheme: str, every: int) -> None:
    """In the dark only colours differ, so there axe sees every third page."""
    page = opened(scheme=scheme)
    for at, path in enumerate(paths(shop)):
        go(page, path)
        assert page.title().endswith("· Darkroom")
        assert at % every or serious(page) == [], path
        assert overflow(page) == 0, path


@pytest.mark.parametrize(
    ("who", "scheme", "size"),
    [("viewer", "dark", NARROW), ("operator", "light", ZOOMED), ("administrator", "dark", NARROW)],
)
def test_every_page_suits_each_preset_and_narrow_windows(
    opened: Opens, shop: Seeded, who: str, scheme: str, size: tuple[int, int]
) -> None:
    page = opened(who, size, scheme)
    for path in paths(shop):
        if path != "audit":
            go(page, path)
            assert overflow(page) == 0, path
    go(page, f"jobs/{shop.crashed}")
    assert serious(page) == []


def test_opened_forms_and_what_was_revealed_are_clean_too(opened: Opens, shop: Seeded) -> None:
    page = opened(size=NARROW)
    for path, summary in (("queues", "Pause…"), ("scopes", "Set capacity…"), (f"jobs/{shop.torn}", "Retry…")):
        go(page, path)
        page.locator("summary", has_text=summary).first.click()
        assert serious(page) == [], path
        assert overflow(page) == 0, path
    page.locator("summary", has_text="Reveal error…").first.click()
    page.get_by_role("button", name="Reveal error").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Revealed: error")
    expect(page.locator("#text-1")).to_contain_text("ValueError")
    assert serious(page) == []
    assert overflow(page) == 0


def test_the_keyboard_alone_leads_to_a_cancelled_run(opened: Opens, shop: Seeded) -> None:
    job_id = shop.waiting[10]
    page = opened("operator")
    go(page, f"jobs/{job_id}")
    page.keyboard.press("Tab")
    expect(page.locator(":focus")).to_have_text("Skip to the page")
    page.keyboard.press("Enter")
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.locator(":focus").inner_text() == "Cancel…":
            break
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    page.keyboard.type("by keyboard")
    page.keyboard.press("Enter")
    expect(page.locator(".notice")).to_have_text("It is cancelled and will not run.")


def test_forms_work_without_scripts(opened: Opens, shop: Seeded) -> None:
    page = opened("operator", scripts=False)
    go(page, f"jobs/{shop.waiting[11]}")
    page.locator("summary", has_text="Cancel…").click()
    page.get_by_label("Reason").fill("no scripts")
    page.get_by_role("button", name="Cancel this job").click()
    expect(page.locator(".notice")).to_have_text("It is cancelled and will not run.")
    go(page, "jobs")
    for at in (2, 3):
        page.locator("input[name=target]").nth(at).check()
    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("of 2 done")


def test_a_page_reads_itself_anew_and_keeps_what_the_reader_did(opened: Opens, shop: Seeded) -> None:
    page = opened("operator")
    go(page, "")
    numbers = page.locator("details.numbers").first
    numbers.locator("summary").click()
    link = page.get_by_role("link", name="archive")
    link.focus()
    page.evaluate("document.querySelector('h1').kept = true")
    before = page.locator("#as-of").inner_text()
    expect(page.locator("#as-of")).not_to_have_text(before, timeout=PATIENCE_MS)
    assert page.evaluate("document.querySelector('h1').kept")
    assert numbers.get_attribute("open") is not None
    expect(link).to_be_focused()


def test_nothing_moves_while_somebody_chooses_nor_when_it_is_turned_off(opened: Opens) -> None:
    page = opened("operator")
    page.clock.install()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(urlsplit(request.url).path.rpartition("/")[2]))
    for path, choose in (("queues", "summary:has-text('Pause…')"), ("jobs", "input[name=target]")):
        go(page, path)
        with page.expect_response(f"**/{path}"):
            page.clock.run_for(5_500)
        expect(page.locator("#as-of")).to_be_visible()
        page.locator(choose).first.click()
        page.clock.run_for(60_000)
        page.locator(choose).first.click()
        page.get_by_label("Refresh").select_option("0")
        page.clock.run_for(60_000)
        assert asked.count(path) == 2
        page.get_by_label("Refresh").select_option("5")


def test_a_page_that_cannot_be_read_anew_says_so_at_its_top_until_it_can(opened: Opens) -> None:
    page = opened(size=NARROW, loses=True)
    page.clock.install()
    go(page, "queues")
    stale = page.locator("main > :first-child")
    expect(stale).to_have_role("status")
    expect(stale).to_be_empty()
    page.route("**/queues", lambda route: route.abort())
    page.clock.run_for(5_500)
    expect(stale).to_contain_text(f"not be refreshed since {page.locator('#as-of time').inner_text()} UTC")
    expect(stale).to_be_in_viewport()
    assert serious(page) == []
    assert overflow(page) == 0
    page.unroute("**/queues")
    page.clock.run_for(11_000)
    expect(stale).to_be_empty()


def test_a_page_that_says_not_now_tries_again_by_itself(opened: Opens) -> None:
    with contextlib.closing(Runwick("shop", store="memory://")) as rw:
        desk = failing(rw, StoreUnavailable("store_unavailable", "gone"))
        with served(dashboard(Management(desk, schemes=[CookieScheme()], grants=granted))) as base:
            page = opened("viewer", base=base, loses=True)
            page.clock.install()
            page.goto("./jobs")
            expect(page.get_by_role("heading", level=1)).to_have_text("Not now")
            expect(page.get_by_text("This page tries again by itself")).to_be_visible()
            for _ in range(2):  # and not only once
                with page.expect_response("**/jobs") as answered:
                    page.clock.run_for(5_500)
                assert answered.value.status == 503
            desk.error = None
            expect(page.get_by_role("heading", level=1)).to_have_text("Jobs", timeout=PATIENCE_MS)


def test_tables_fit_and_an_opened_form_moves_no_button(opened: Opens, shop: Seeded) -> None:
    page = opened()
    for path in ("jobs?name=photo.mount", "jobs?tenant=studio", f"jobs/{shop.crashed}", f"jobs/{shop.torn}"):
        go(page, path)
        cut = "boxes => boxes.filter(box => box.scrollWidth > box.clientWidth).map(box => box.ariaLabel)"
        assert page.locator(".box").evaluate_all(cut) == [], path
    summaries = page.locator(".acts.over > details > summary")
    before = [summary.bounding_box() for summary in summaries.all()]
    summaries.first.click()
    expect(page.get_by_role("button", name="Retry this job")).to_be_visible()
    assert [summary.bounding_box() for summary in summaries.all()] == before
    summaries.nth(1).click()
    expect(page.get_by_role("button", name="Retry this job")).to_be_hidden()


def test_all_that_match_are_walked_shown_and_acted_on(opened: Opens, shop: Seeded) -> None:
    page = opened("operator")
    go(page, f"jobs?state=pending&tenant={CROWD}")
    page.get_by_role("button", name="All that match…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("status")).to_contain_text("jobs match")
    found = int(dialog.get_by_role("status").inner_text().partition(" ")[0])
    assert found > 100
    assert serious(page) == []
    # One is cancelled between the preview and the act: it is left alone, and that is said.
    link = page.locator("td a[href*='/jobs/']").first
    other = opened("operator")
    go(other, f"jobs/{(link.get_attribute('href') or '').rpartition('/')[2]}")
    other.locator("summary", has_text="Cancel…").click()
    other.get_by_role("button", name="Cancel this job").click()
    expect(other.locator(".notice")).to_be_visible()
    dialog.get_by_role("button", name=f"Cancel {found}").click()
    expect(dialog.get_by_role("status")).to_have_text(f"{found - 1} of {found} done, 1 refused.")
    expect(dialog.get_by_role("listitem")).to_contain_text("It has changed since the page was read")
    dialog.get_by_role("button", name="Show the list again").click()
    expect(page.locator(".empty")).to_have_text("No job matches.")


def test_the_theme_changes_at_once_and_is_kept(opened: Opens) -> None:
    page = opened("viewer")
    go(page, "")
    with page.expect_response(lambda response: response.url.endswith("/theme")):
        page.get_by_label("Theme").select_option("dark")
    assert page.evaluate("getComputedStyle(document.body).colorScheme") == "dark"
    go(page, "queues")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_an_id_is_copied(opened: Opens, shop: Seeded) -> None:
    page = opened("viewer")
    go(page, f"jobs/{shop.succeeded}")
    page.get_by_role("button", name="Copy the job's id").click()
    expect(page.locator("[data-told]")).to_have_text("Copied.")
    assert page.evaluate("navigator.clipboard.readText()") == shop.succeeded


def test_a_second_click_sends_nothing(opened: Opens, shop: Seeded) -> None:
    page = opened("operator")
    go(page, f"jobs/{shop.waiting[12]}")
    stopped = page.evaluate(
        """() => {
            const stopped = [];
            document.addEventListener("submit", (event) => stopped.push(event.defaultPrevented));
            const form = document.querySelector("#act-cancel form");
            form.requestSubmit();
            form.requestSubmit();
            return stopped;
        }"""
    )
    assert stopped == [False, True]
    expect(page.locator(".notice")).to_be_visible()
