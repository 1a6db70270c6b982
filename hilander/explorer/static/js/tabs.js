// A list of tabs: one of them is in the Tab order, the arrow keys go to the others.

import { h } from "./dom.js";

export function tabList(label, entries, chosen, choose) {
  const keys = entries.map(([key]) => key);
  const tabs = entries.map(([key, text]) =>
    h("button", { role: "tab", "aria-selected": String(key === chosen), tabIndex: key === chosen ? 0 : -1, onclick: () => choose(key), data: { tab: key } }, text));
  if (!keys.includes(chosen)) tabs[0].tabIndex = 0;
  function onKey(event) {
    const at = tabs.indexOf(document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined || at < 0) return;
    event.preventDefault();
    event.stopPropagation();
    const next = tabs[(to + tabs.length) % tabs.length];
    tabs.forEach((tab) => { tab.tabIndex = tab === next ? 0 : -1; });
    next.focus();
    choose(next.dataset.tab);
  }
  return h("div", { class: "tabs", role: "tablist", "aria-label": label, onkeydown: onKey }, tabs);
}
