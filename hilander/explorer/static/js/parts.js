// Elements that several views use: thumbnails, cards, meters, pagers, messages, dialogs.

import { count, h, plural, share } from "./dom.js";

export function thumb(item, { peak = false, link = true } = {}) {
  const title = item.label ? `${item.id} · ${item.label}` : item.id;
  const inner = item.image
    ? h("img", { src: item.image, alt: item.id, loading: "lazy", decoding: "async", onerror: (event) => showId(event.target, item) })
    : h("span", { class: "text" }, item.id);
  const kind = "thumb" + (peak ? " peak" : "");
  return link ? h("a", { class: kind, href: `#/point/${item.row}`, title }, inner) : h("span", { class: kind, title }, inner);
}

function showId(image, item) {
  image.replaceWith(h("span", { class: "text" }, item.id));
}

export function thumbs(items, { strip = false, peak = false } = {}) {
  return h("div", { class: strip ? "thumbs strip" : "thumbs" }, items.map((item, i) => thumb(item, { peak: peak && i === 0 })));
}

export function meter(kind, label, value) {
  const width = `${Math.round(100 * (value ?? 0))}%`;
  return h(
    "div",
    { class: `meter ${kind}` },
    h("span", {}, label),
    h("span", { class: "track" }, h("span", { class: "fill", style: { width, display: "block" } })),
    h("span", { class: "amount" }, share(value)),
  );
}

export const clusterName = (one) => one.name || `Cluster ${one.cluster}`;
export const clusterLink = (level, cluster) => `#/cluster/${level}/${cluster}`;

export function card(one, level, { pick = null, selected = false } = {}) {
  const box =
    pick &&
    h("input", {
      type: "checkbox",
      checked: selected,
      "aria-label": `Select ${clusterName(one)}`,
      onchange: (event) => pick(one, event.target.checked),
    });
  return h(
    "article",
    { class: "card" + (one.junk ? " junk" : "") + (selected ? " selected" : ""), tabIndex: 0, data: { cluster: one.cluster } },
    h(
      "div",
      { class: "head" },
      box,
      h("a", { class: "title", href: clusterLink(level, one.cluster), title: clusterName(one) }, clusterName(one)),
      one.name && h("span", { class: "chip" }, `#${one.cluster}`),
      one.junk && h("span", { class: "chip bad" }, "junk"),
      one.edited && h("span", { class: "chip accent" }, "edited"),
      h("span", { class: "count" }, count(one.size)),
    ),
    thumbs(one.exemplars, { peak: true }),
    h(
      "div",
      { class: "meters" },
      meter("quality", "quality", one.quality),
      // At a level of the hierarchy nothing but its merges is known.
      level === "reviewed" ? meter("doubt", "doubt", one.doubt) : meter("quality", "weakest", 1 - one.doubt),
      one.purity !== null && meter("purity", "purity", one.purity),
    ),
  );
}

export function pager(page, limit, go) {
  if (page.total <= limit) return h("div", { class: "pager" }, plural(page.total, "entry", "entries"));
  const last = page.offset + page.items.length;
  return h(
    "div",
    { class: "pager" },
    h("button", { class: "button small", disabled: page.offset === 0, onclick: () => go(Math.max(0, page.offset - limit)), title: "Previous page ([)", data: { page: "back" } }, "← Back"),
    h("span", { class: "num" }, `${count(page.offset + 1)}–${count(last)} of ${count(page.total)}`),
    h("button", { class: "button small", disabled: page.next === null, onclick: () => go(page.next), title: "Next page (])", data: { page: "next" } }, "Next →"),
  );
}

export function toast(text, { bad = false, action = null } = {}) {
  const node = h("div", { class: bad ? "toast bad" : "toast", role: bad ? "alert" : "status" }, h("span", {}, text), action);
  const box = document.getElementById("toasts");
  while (box.children.length > 3) box.firstChild.remove();
  box.append(node);
  setTimeout(() => node.remove(), bad ? 9000 : 5000);
}

export function ask(title, { label, value = "", hint = "", ok = "OK" }) {
  return new Promise((resolve) => {
    const input = h("input", { type: "text", value, maxLength: 200, "aria-label": label, style: { width: "100%" } });
    const done = (event) => {
      event.preventDefault();
      resolve(input.value);
      dialog.close();
    };
    const dialog = h(
      "dialog",
      { onclose: () => { dialog.remove(); resolve(null); } },
      h("form", { class: "stack", style: { minWidth: "min(380px, 80vw)" }, onsubmit: done }, h("h2", {}, title), hint && h("p", { class: "muted" }, hint), input,
        h("div", { class: "row end" }, h("button", { class: "button", type: "button", onclick: () => dialog.close() }, "Cancel"), h("button", { class: "button primary", type: "submit" }, ok))),
    );
    document.body.append(dialog);
    dialog.showModal();
    input.select();
  });
}

export function showDialog(...children) {
  const dialog = h("dialog", { onclose: () => dialog.remove() }, ...children);
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

// The whole image; the server frames the face if the item is one.
export function showFullSize(item) {
  const image = h("img", { src: item.image.replace("/image?", "/full?"), alt: item.id });
  const frame = h("div", { class: "frame" }, image);
  const dialog = showDialog(h("div", { class: "stack" }, frame, h("form", { method: "dialog", class: "spread" }, h("strong", {}, item.id), h("button", { class: "button primary" }, "Close"))));
  dialog.classList.add("full-size");
  dialog.setAttribute("aria-label", item.id);
}

export const loading = () => h("div", { class: "loading" }, "Loading…");
export const empty = (text) => h("div", { class: "empty" }, text);
