// Says something quietly to who sees the page and to who hears it.
const place = document.querySelector("[data-told]");

export function tell(text) {
  place.textContent = text;
}
