// Ticked entries of a list, and the bar of their actions. Ticks belong to the page, not to one drawing, so
// they survive a redraw.

import { h } from "./dom.js";

// Each entry of the list has its number as data-<key>, and a checkbox.
export function makeSelection(page, list, { key, label, buttons }) {
  const ticked = page.keep("ticked", () => new Map());

  let last = null;
  let shift = false;
  list.addEventListener("click", (event) => { shift = event.shiftKey; }, true);
  list.addEventListener("keydown", (event) => { if (event.key === " ") shift = event.shiftKey; }, true);

  // With Shift, everything between the last ticked entry and this one gets the same tick.
  function tick(number, one, on) {
    const shown = [...list.children].map((node) => Number(node.dataset[key]));
    const range = [shown.indexOf(last), shown.indexOf(number)].sort((a, b) => a - b);
    const numbers = shift && range[0] >= 0 ? shown.slice(range[0], range[1] + 1) : [number];
    for (const each of numbers) {
      if (on) ticked.set(each, each === number ? one : { [key]: each, ...(key === "cluster" && { cluster: each }) });
      else ticked.delete(each);
    }
    last = number;
    shift = false;
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

  // Undo, a split or a move can remove what was ticked. Entries that the list shows still exist.
  async function dropLost(isThere) {
    const shown = new Set([...list.children].map((node) => Number(node.dataset[key])));
    const unseen = [...ticked.keys()].filter((number) => !shown.has(number));
    const there = await Promise.all(unseen.map(isThere));
    const lost = unseen.filter((_, i) => !there[i]);
    if (lost.length) drop(lost);
  }

  page.left.addEventListener("abort", removeBar);
  return { ticked, tick, drop, clear, show, dropLost };
}

function removeBar() {
  document.querySelector(".action-bar")?.remove();
}
