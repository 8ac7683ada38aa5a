// Buttons that copy an id or a text.
import { tell } from "./told.js";

export function startCopying() {
  if (!navigator.clipboard) return;
  const show = () => {
    for (const button of document.querySelectorAll("[data-copy], [data-copy-of]")) {
      button.dataset.shown = "";
      button.hidden = false;
    }
  };
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy], [data-copy-of]");
    if (!button) return;
    const text = button.dataset.copy ?? document.getElementById(button.dataset.copyOf).textContent;
    try {
      await navigator.clipboard.writeText(text);
      tell("Copied.");
    } catch {
      tell("It could not be copied.");
    }
  });
  document.addEventListener("morphed", show);
  show();
}
