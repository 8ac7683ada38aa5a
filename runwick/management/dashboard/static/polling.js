// Reads the page again every few seconds while it can be seen, and turns the main part into what it is now. It waits while
// somebody is choosing: with jobs selected, a form opened or a dialog shown, nothing moves under his hands. When the page
// cannot be read, a line at its top says so until it can. A page that says "not now" is tried until it says something else.
import { morph } from "./morphing.js";
import { tell } from "./told.js";

const KEY = "runwick.every";
const PATIENCE_MS = 10_000;
const RETRY_MS = 5_000;
const main = document.getElementById("main");
let timer = 0;
let failures = 0;

export function startPolling() {
  if (main.hasAttribute("data-retries")) startRetrying();
  if (!main.hasAttribute("data-polls")) return;
  const select = document.querySelector("[data-every]");
  select.value = kept() ?? "5";
  if (!select.value) select.value = "5";
  document.querySelector("[data-refresh]").hidden = false;
  select.addEventListener("change", () => {
    keep(select.value);
    plan(select);
  });
  document.addEventListener("visibilitychange", () => plan(select, !document.hidden));
  plan(select);
}

function plan(select, now = false) {
  clearTimeout(timer);
  const every = Number(select.value);
  if (!every || document.hidden) return;
  // After failures more rarely, up to a minute.
  const wait = now ? 0 : Math.min(every * 2 ** failures, Math.max(every, 60)) * 1000;
  timer = setTimeout(async () => {
    if (!isChoosing()) await refresh();
    plan(select);
  }, wait);
}

function isChoosing() {
  return Boolean(
    main.querySelector("input[name=target]:checked, details.act[open], dialog[open], form[data-sent]") ||
      (main.contains(document.activeElement) && document.activeElement.matches("input:not([type=checkbox]), select")),
  );
}

async function refresh() {
  try {
    const response = await read();
    if (!response.ok) throw new Error(String(response.status));
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const next = page.getElementById("main");
    if (!next || isChoosing()) return;
    const before = main.querySelectorAll(".trouble").length;
    morph(main, next);
    main.dispatchEvent(new CustomEvent("morphed", { bubbles: true }));
    const after = main.querySelectorAll(".trouble").length;
    if (failures) tell("Refreshing again.");
    if (after !== before) tell(after === 1 ? "One thing is wrong now." : `${after} things are wrong now.`);
    failures = 0;
  } catch (error) {
    failures = Math.min(failures + 1, 4);
    warn(error.message === "401");
  }
}

// A server that takes the question and never answers is as good as none.
function read() {
  return fetch(location.href, { headers: { Accept: "text/html" }, signal: AbortSignal.timeout(PATIENCE_MS) });
}

// What the next page has there is nothing, so the line goes when there is one.
function warn(isSignedOut) {
  const since = main.querySelector("#as-of time")?.textContent;
  const what = `This page could not be refreshed${since ? ` since ${since} UTC` : ""}; things may have changed.`;
  const text = `${what} ${isSignedOut ? "Your session has ended: load the page again to sign in." : "Trying again."}`;
  const place = main.querySelector("[data-stale]");
  if (place.textContent !== text) place.textContent = text;
}

function startRetrying() {
  main.querySelector("[data-retrying]").hidden = false;
  let next = 0;
  const attempt = async () => {
    const response = await read().catch(() => null);
    if (response && response.status !== 503) location.reload();
    else wait();
  };
  const wait = () => {
    clearTimeout(next);
    if (!document.hidden) next = setTimeout(attempt, RETRY_MS);
  };
  document.addEventListener("visibilitychange", wait);
  wait();
}

function kept() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function keep(value) {
  try {
    localStorage.setItem(KEY, value);
  } catch {
    // It holds for this page only.
  }
}
