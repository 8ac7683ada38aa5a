// One action upon all jobs that match the filter of the page: it walks the list in hundreds, shows what it found, and
// after a yes acts in hundreds, with progress and a list of what was refused. It reads and posts what a person would.

const HUNDRED = 100;
const APPLIES = {
  cancel: ["pending", "reserved", "running", "retrying"],
  retry: ["failed", "cancelled"],
  rerun: ["succeeded"],
};

export function startMatching() {
  const place = document.querySelector("[data-matching]");
  if (!place) return;
  place.dataset.shown = "";
  place.hidden = false;
  place.addEventListener("click", (event) => {
    if (event.target.closest("[data-walk]")) new Walk(place).open();
  });
}

class Walk {
  constructor(place) {
    this.form = place.closest("form");
    this.link = place.dataset.matching;
    this.actions = place.dataset.actions.split(" ");
    this.found = [];
    this.refused = [];
    this.isStopped = false;
  }

  async open() {
    this.dialog = element("dialog", { "aria-labelledby": "walk-title" });
    this.title = element("h2", { id: "walk-title" }, "All jobs that match");
    this.status = element("p", { role: "status" }, "Reading…");
    this.body = element("div", { class: "stack" });
    this.ways = element("div", { class: "row" });
    const inside = element("div", { class: "stack" });
    inside.append(this.title, this.status, this.body, this.ways);
    this.dialog.append(inside);
    this.dialog.addEventListener("close", () => {
      this.isStopped = true;
      this.dialog.remove();
    });
    this.form.closest("main").append(this.dialog);
    this.offer(["Close", "", () => this.dialog.close()]);
    this.dialog.showModal();
    await this.tried(() => this.read());
  }

  async read() {
    let link = this.link;
    while (link && !this.isStopped) {
      const page = await this.fetched(link);
      for (const box of page.querySelectorAll("input[name=target]")) {
        this.found.push({ target: box.value, state: box.dataset.state, name: box.getAttribute("aria-label") });
      }
      this.status.textContent = `Reading… ${this.found.length.toLocaleString("en")} so far`;
      link = page.querySelector("a[rel=next]")?.getAttribute("href");
    }
    if (!this.isStopped) this.preview();
  }

  preview() {
    this.status.textContent = `${this.found.length.toLocaleString("en")} jobs match. What shall be done with them?`;
    const list = element("ul");
    const ways = [["Close", "", () => this.dialog.close()]];
    for (const action of this.actions) {
      const fit = this.found.filter((job) => APPLIES[action].includes(job.state));
      const states = [...new Set(fit.map((job) => job.state))];
      const parts = states.map((state) => `${fit.filter((job) => job.state === state).length.toLocaleString("en")} ${state}`);
      list.append(element("li", {}, fit.length ? `${action}: ${parts.join(", ")}` : `${action}: none is in a state for it`));
      if (fit.length) ways.push([`${capital(action)} ${fit.length.toLocaleString("en")}`, action === "cancel" ? "danger" : "main", () => this.tried(() => this.act(action, fit))]);
    }
    this.body.replaceChildren(list);
    this.offer(...ways);
  }

  async act(action, fit) {
    const bar = element("progress", { max: fit.length, value: 0, "aria-label": "Progress" });
    this.body.replaceChildren(bar);
    this.offer(["Stop", "", () => (this.isStopped = true)]);
    let done = 0;
    for (let at = 0; at < fit.length && !this.isStopped; at += HUNDRED) {
      const hundred = fit.slice(at, at + HUNDRED);
      // One id for each hundred: when its answer is lost, it is sent again and never acts twice.
      const page = await this.fetched(`${this.base()}/${action}`, this.fields(hundred));
      for (const row of page.querySelectorAll("tr[data-answer]")) {
        if (row.dataset.answer === "done") done += 1;
        else this.refused.push(row.cells[0].querySelector("a"), row.cells[1].textContent.trim());
      }
      bar.value = at + hundred.length;
      this.status.textContent = `${(at + hundred.length).toLocaleString("en")} of ${fit.length.toLocaleString("en")} asked, ${done.toLocaleString("en")} done`;
    }
    this.finish(done, fit.length);
  }

  finish(done, all) {
    this.status.textContent = `${this.isStopped ? "Stopped: " : ""}${done.toLocaleString("en")} of ${all.toLocaleString("en")} done, ${this.refused.length / 2} refused.`;
    const list = element("ul");
    for (let at = 0; at < this.refused.length; at += 2) {
      const item = element("li");
      item.append(this.refused[at], ` ${this.refused[at + 1]}`);
      list.append(item);
    }
    this.body.replaceChildren(list);
    this.offer(["Show the list again", "main", () => location.reload()]);
  }

  fields(jobs) {
    const fields = new URLSearchParams();
    fields.set("antiforgery", this.form.elements.antiforgery.value);
    fields.set("command", crypto.randomUUID?.() ?? uuid());
    fields.set("reason", this.form.elements.reason.value);
    for (const job of jobs) fields.append("target", job.target);
    return fields;
  }

  base() {
    return new URL(this.link, location.href).pathname;
  }

  // A page, read or posted; when the server asks for patience, or does not answer, again with the same words.
  async fetched(link, body) {
    for (let tries = 0; ; tries += 1) {
      const response = await fetch(link, body ? { method: "POST", body } : {}).catch(() => null);
      if (response?.ok) return new DOMParser().parseFromString(await response.text(), "text/html");
      const status = response?.status ?? 0;
      if (this.isStopped || ![0, 429, 503, 504].includes(status) || tries > 20) throw new Error(String(status));
      const wait = Number(response?.headers.get("Retry-After") ?? 2);
      this.status.textContent = `The server asks for patience; going on in ${wait} s`;
      await new Promise((done) => setTimeout(done, wait * 1000));
    }
  }

  async tried(step) {
    try {
      await step();
    } catch (error) {
      this.status.textContent = `It stopped: the server answered ${error.message}. What was done stays done; look at the list again.`;
      this.offer(["Show the list again", "main", () => location.reload()]);
    }
  }

  offer(...ways) {
    this.ways.replaceChildren(
      ...ways.map(([name, look, act]) => {
        const button = element("button", { type: "button", class: look }, name);
        button.addEventListener("click", act);
        return button;
      }),
    );
  }
}

function element(name, attributes = {}, text = "") {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== "") made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

function capital(word) {
  return word[0].toUpperCase() + word.slice(1);
}

// Where the page came over plain HTTP there is no randomUUID.
function uuid() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");
}
