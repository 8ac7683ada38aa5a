// Turns one tree of elements into another one and keeps every element that both have: so focus, selected text, scroll
// places and opened details stay where they are.

export function morph(old, next) {
  morphAttributes(old, next);
  const left = new Map();
  for (const child of old.children) if (child.id) left.set(child.id, child);
  let place = old.firstChild;
  for (const wanted of [...next.childNodes]) {
    const kept = partner(place, wanted, left);
    if (!kept) {
      old.insertBefore(document.importNode(wanted, true), place);
      continue;
    }
    if (kept === place) place = place.nextSibling;
    else old.insertBefore(kept, place);
    if (kept.nodeType === Node.ELEMENT_NODE) morph(kept, wanted);
    else if (kept.data !== wanted.data) kept.data = wanted.data;
  }
  while (place) {
    const gone = place;
    place = place.nextSibling;
    gone.remove();
  }
}

// The old node that becomes the wanted one: the one of the same id, or else the one that stands there.
function partner(place, wanted, left) {
  if (wanted.id) {
    const same = left.get(wanted.id);
    return same && same.nodeName === wanted.nodeName ? same : null;
  }
  if (!place || place.nodeName !== wanted.nodeName || place.id) return null;
  return place;
}

function morphAttributes(old, next) {
  for (const { name } of [...old.attributes]) if (!next.hasAttribute(name) && !isKept(old, name)) old.removeAttribute(name);
  for (const { name, value } of next.attributes) {
    if (old.getAttribute(name) !== value && !isKept(old, name)) old.setAttribute(name, value);
  }
}

// What the reader did to the page: opened details, and what our modules took out of hiding.
function isKept(element, name) {
  if (name === "open") return element.nodeName === "DETAILS" || element.nodeName === "DIALOG";
  return name === "data-shown" || (name === "hidden" && "shown" in element.dataset);
}
