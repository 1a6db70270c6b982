// What is ticked in a list, and the bar of what can be done with it. Ticks belong to the page and
// not to one drawing of it: when the view is drawn again they are there again.

import { h } from "./dom.js";

// Entries of the list carry the number of what they show as data-<key>, and a checkbox.
export function makeSelection(page, list, { key, label, buttons }) {
  const ticked = page.keep("ticked", () => new Map());

  function tick(number, one, on) {
    if (on) ticked.set(number, one);
    else ticked.delete(number);
    show();
  }

  function drop(numbers) {
    for (const number of numbers) ticked.delete(number);
    show();
  }

  function show() {
    if (page.left.aborted) return;
    for (const node of list.children) {
      const on = ticked.has(Number(node.dataset[key]));
      const box = node.querySelector("input[type=checkbox]");
      if (box) box.checked = on;
      node.classList.toggle("selected", on);
    }
    list.classList.toggle("picking", ticked.size > 0);
    removeBar();
    if (!ticked.size) return;
    document.body.append(
      h("div", { class: "action-bar", role: "toolbar", "aria-label": label }, h("strong", {}, `${ticked.size} selected`), buttons(ticked),
        h("button", { class: "button", onclick: clear }, "Clear ", h("kbd", {}, "Esc"))));
  }

  const clear = () => drop([...ticked.keys()]);

  // Undo, a split or a move may have taken away what was ticked; what the list shows is known to be there.
  async function dropLost(isThere) {
    const shown = new Set([...list.children].map((node) => Number(node.dataset[key])));
    const unsure = [...ticked.keys()].filter((number) => !shown.has(number));
    const there = await Promise.all(unsure.map(isThere));
    const lost = unsure.filter((_, i) => !there[i]);
    if (lost.length) drop(lost);
  }

  page.left.addEventListener("abort", removeBar);
  return { ticked, tick, drop, clear, show, dropLost };
}

function removeBar() {
  document.querySelector(".action-bar")?.remove();
}
