// The search box: points by id, clusters by name or number.

import { get } from "./api.js";
import { h, plural, replace } from "./dom.js";
import { clusterLink, thumb } from "./parts.js";

export function startSearch() {
  const input = document.getElementById("search");
  const box = document.getElementById("found");
  let waiting = 0;
  let asked = 0;

  const close = () => {
    // A late answer would open the box again.
    clearTimeout(waiting);
    asked++;
    box.hidden = true;
    input.setAttribute("aria-expanded", "false");
  };

  async function search() {
    const text = input.value.trim();
    const mine = ++asked;
    if (!text) return close();
    const found = await get("search", { q: text, limit: 8 }).catch(() => null);
    if (!found || mine !== asked) return;
    const entries = [
      ...found.clusters.map((one) =>
        entry(clusterLink("reviewed", one.cluster), h("span", { class: "chip accent" }, `#${one.cluster}`), one.name ?? `Cluster ${one.cluster}`, plural(one.size, "item"))),
      ...found.points.map((one) => entry(`#/point/${one.row}`, thumb(one, { link: false }), one.id, one.label ?? "")),
    ];
    replace(box, entries.length ? entries : h("p", { class: "muted", style: { padding: "4px 8px" } }, "Nothing found."));
    box.hidden = false;
    input.setAttribute("aria-expanded", "true");
  }

  function entry(href, mark, text, note) {
    return h("a", { href, role: "option", onclick: close }, mark, h("span", { style: { flex: "1", minWidth: "0", overflow: "hidden", textOverflow: "ellipsis" } }, text), h("span", { class: "muted" }, note));
  }

  function step(by) {
    const all = [...box.querySelectorAll("a")];
    const now = all.findIndex((one) => one.getAttribute("aria-selected") === "true");
    all.forEach((one) => one.removeAttribute("aria-selected"));
    all[(now + by + all.length) % all.length]?.setAttribute("aria-selected", "true");
  }

  input.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(search, 160);
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      step(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Enter") {
      const chosen = box.querySelector('a[aria-selected="true"]') ?? box.querySelector("a");
      if (chosen) {
        location.hash = chosen.getAttribute("href");
        input.blur();
        close();
      }
    } else if (event.key === "Escape") close();
  });
  document.addEventListener("click", (event) => {
    if (!box.contains(event.target) && event.target !== input) close();
  });
}
