// All jobs of a page with one click, and how many are selected.
export function startSelecting() {
  const form = document.querySelector("[data-selection]");
  if (!form) return;
  const show = () => {
    const boxes = [...form.querySelectorAll("input[name=target]")];
    const chosen = boxes.filter((box) => box.checked).length;
    const all = form.querySelector("[data-all]");
    if (all) {
      all.dataset.shown = "";
      all.hidden = false;
      all.checked = chosen > 0 && chosen === boxes.length;
      all.indeterminate = chosen > 0 && chosen < boxes.length;
    }
    const count = form.querySelector("[data-count]");
    const text = chosen ? `With the ${chosen} selected:` : "With the selected ones:";
    if (count && count.textContent !== text) count.textContent = text;
    for (const button of form.querySelectorAll("button[formaction]")) button.disabled = !chosen;
  };
  form.addEventListener("change", (event) => {
    if (event.target.matches("[data-all]")) {
      for (const box of form.querySelectorAll("input[name=target]")) box.checked = event.target.checked;
    }
    show();
  });
  document.addEventListener("morphed", show);
  window.addEventListener("pageshow", show);
  show();
}
