// Arrow keys in a grid: one entry is in the Tab order, the arrows go to the others.

export function arrowKeys(grid, selector) {
  const entries = () => [...grid.querySelectorAll(selector)];
  const columns = () => Math.max(1, getComputedStyle(grid).gridTemplateColumns.split(" ").length);

  function rove(chosen) {
    for (const one of entries()) one.tabIndex = one === chosen ? 0 : -1;
  }

  grid.addEventListener("keydown", (event) => {
    const all = entries();
    const at = all.indexOf(event.target.closest(selector));
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns(), ArrowUp: -columns() }[event.key];
    const to = event.key === "Home" ? 0 : event.key === "End" ? all.length - 1 : at + (step ?? 0);
    if (at < 0 || (step === undefined && !["Home", "End"].includes(event.key)) || !all[to]) return;
    event.preventDefault();
    event.stopPropagation();
    rove(all[to]);
    all[to].focus();
  });
  return () => rove(entries()[0]);
}
