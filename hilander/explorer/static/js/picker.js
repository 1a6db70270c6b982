// A dialog to choose a cluster: pictures, names, search, the likeliest first. Nothing is chosen at the
// start, and then nothing is done.

import { post } from "./api.js";
import { newestOnly } from "./busy.js";
import { h, plural, replace, share } from "./dom.js";
import { clusterName, thumb } from "./parts.js";

// Resolves to {cluster, name}, to {isNew: true}, or to null. `of` is {group} or {rows}.
export function pickCluster(title, of, { ok, canBeNew = false }) {
  return new Promise((resolve) => {
    let found = [];
    let chosen = -1;
    const newest = newestOnly();
    const list = h("div", { class: "targets", role: "listbox", id: "targets", "aria-label": "Clusters" });
    const hint = h("p", { class: "muted", role: "status" });
    const input = h("input", {
      type: "search", placeholder: "Name, number or id of a member", maxLength: 200, autocomplete: "off", role: "combobox",
      "aria-label": "Find the cluster", "aria-expanded": "true", "aria-controls": "targets", style: { width: "100%" },
    });
    const button = h("button", { class: "button primary", type: "submit", disabled: true }, ok);

    async function search() {
      const answer = await newest(post("review/targets", { ...of, search: input.value })).catch((error) => ({ items: [], error: error.message }));
      if (!answer) return;
      found = answer.items;
      replace(list, found.map(option));
      choose(-1);
      hint.textContent = answer.error ?? (found.length ? "The likeliest first. Arrow keys or a click choose, Enter confirms." : "No cluster is found.");
    }

    function option(one, i) {
      return h("div", { class: "target", role: "option", id: `target-${i}`, "aria-selected": "false", data: { cluster: one.cluster }, onclick: () => choose(i), ondblclick: () => finish(take(i)) },
        h("div", { class: "target-name" }, h("strong", {}, clusterName(one)), h("span", { class: "muted" }, plural(one.size, "item"), one.linkage !== null && ` · closeness ${share(one.linkage)}`)),
        h("div", { class: "thumbs strip" }, one.exemplars.map((item) => thumb(item, { link: false }))));
    }

    function choose(i) {
      chosen = i;
      [...list.children].forEach((node, at) => node.setAttribute("aria-selected", String(at === i)));
      list.children[i]?.scrollIntoView({ block: "nearest" });
      if (i < 0) input.removeAttribute("aria-activedescendant");
      else input.setAttribute("aria-activedescendant", `target-${i}`);
      button.disabled = i < 0;
      replace(button, i < 0 ? ok : `${ok} ${clusterName(found[i])}`);
    }

    const take = (i) => ({ cluster: found[i].cluster, name: clusterName(found[i]) });

    function finish(result) {
      resolve(result);
      dialog.close();
    }

    function onKey(event) {
      // The disabled button would stop the form from being sent, and nobody would know why.
      if (event.key === "Enter" && event.target === input) submit(event);
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step || !found.length) return;
      event.preventDefault();
      choose(chosen < 0 && step < 0 ? found.length - 1 : (chosen + step + found.length) % found.length);
    }

    const submit = (event) => {
      event.preventDefault();
      if (chosen >= 0) finish(take(chosen));
      else hint.textContent = "Choose a cluster first: arrow keys or a click.";
    };
    const dialog = h("dialog", { class: "picker", "aria-label": title, onclose: () => { dialog.remove(); resolve(null); } },
      h("form", { class: "stack", onsubmit: submit, onkeydown: onKey }, h("h2", {}, title), input, hint, list,
        h("div", { class: "row end" },
          canBeNew && h("button", { class: "button", type: "button", onclick: () => finish({ isNew: true }), data: { action: "new" } }, "New cluster"),
          h("button", { class: "button", type: "button", onclick: () => dialog.close() }, "Cancel"), button)));
    let waiting = 0;
    input.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(search, 150);
    });
    document.body.append(dialog);
    dialog.showModal();
    input.focus();
    search();
  });
}
