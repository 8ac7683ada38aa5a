// Light, dark or as the system has it: at once, and kept by the server in its cookie.
import { tell } from "./told.js";

export function startTheme() {
  const form = document.querySelector("[data-theme-form]");
  if (!form) return;
  form.querySelector("[data-needless]").hidden = true;
  form.elements.theme.addEventListener("change", async () => {
    const theme = form.elements.theme.value;
    if (theme) document.documentElement.dataset.theme = theme;
    else delete document.documentElement.dataset.theme;
    try {
      await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)), redirect: "manual" });
    } catch {
      tell("The theme could not be kept.");
    }
  });
}
