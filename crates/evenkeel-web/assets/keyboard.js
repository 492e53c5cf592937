// Keyboard shortcuts. Every page works without this script.
"use strict";
(() => {
  const KEYS_OFF = "evenkeel-keys-off";
  const one = (selector, from = document) => from.querySelector(selector);
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const make = (tag, values = {}, ...children) => {
    const element = Object.assign(document.createElement(tag), values);
    element.append(...children);
    return element;
  };
  const main = one("main");
  const bar = one("#live"); // only pages of a signed-in user have it

  // --- Dialogs ---
  function openDialog(label, ...children) {
    const close = make("button", { type: "button", textContent: "Close" });
    const dialog = make("dialog", { className: "keys" }, make("h2", { textContent: label }), ...children, close);
    dialog.setAttribute("aria-label", label);
    close.onclick = () => dialog.close();
    dialog.onclose = () => dialog.remove();
    document.body.append(dialog);
    dialog.showModal();
    return dialog;
  }

  const links = () => all("header nav a");
  // The letter of a page is the first letter of its name that no page before it has.
  function letters() {
    const taken = new Map();
    for (const link of links()) {
      const letter = [...link.textContent.toLowerCase()].find((it) => /[a-z]/.test(it) && !taken.has(it));
      if (letter) taken.set(letter, link);
    }
    return taken;
  }

  function showHelp() {
    const rows = [["/", "Search"], ["?", "Show this list"], ["Ctrl+K or ⌘K", "Go to a page or find jobs"],
      ["j, k", "Next or previous row of a table"], ["Arrow keys", "Move in the heat map"]];
    for (const [letter, link] of letters()) rows.push([`g ${letter}`, `Go to ${link.textContent}`]);
    const list = make("dl");
    for (const [key, effect] of rows) {
      list.append(make("dt", {}, make("kbd", { textContent: key })), make("dd", { textContent: effect }));
    }
    const isOn = make("input", { type: "checkbox", checked: localStorage.getItem(KEYS_OFF) === null });
    isOn.onchange = () => {
      if (isOn.checked) localStorage.removeItem(KEYS_OFF);
      else localStorage.setItem(KEYS_OFF, "");
    };
    openDialog("Keyboard shortcuts", list, make("label", {}, isOn, " Use shortcuts of a single key"));
  }

  function showPalette() {
    const input = make("input", { type: "search", placeholder: "Page or job" });
    input.setAttribute("aria-label", "Page or job");
    const list = make("ul");
    const fill = () => {
      const text = input.value.trim();
      const fitting = links().filter((it) => it.textContent.toLowerCase().includes(text.toLowerCase()))
        .map((it) => make("a", { href: it.href, textContent: it.textContent }));
      const jobs = make("a", { href: `/jobs?q=${encodeURIComponent(text)}` }, `Find jobs with “${text}”`);
      list.replaceChildren(...(text ? [...fitting, jobs] : fitting).map((link) => make("li", {}, link)));
    };
    input.oninput = fill;
    fill();
    const dialog = openDialog("Go to", input, list);
    input.focus();
    dialog.onkeydown = (event) => {
      const choices = [input, ...all("a", list)];
      const at = choices.indexOf(document.activeElement);
      if (event.key === "Enter" && at === 0) choices[1]?.click();
      const to = { ArrowDown: at + 1, ArrowUp: at - 1 }[event.key];
      if (to === undefined || at < 0) return;
      event.preventDefault();
      choices[Math.max(0, Math.min(to, choices.length - 1))].focus();
    };
  }

  // --- Tables with `data-grid`: one tab stop, arrow keys move between cells ---
  const cells = (grid) => all("tr", grid).map((row) => all("td", row).map((it) => one("a, button", it) || it))
    .filter((row) => row.length > 0);
  function prepareGrids() {
    for (const grid of all("table[data-grid]", main)) {
      cells(grid).flat().forEach((cell, at) => { cell.tabIndex = at === 0 ? 0 : -1; });
    }
  }
  // Makes a cell the tab stop of its grid.
  function enter(cell) {
    const grid = cell.closest("table[data-grid]");
    if (grid) for (const other of cells(grid).flat()) other.tabIndex = other === cell ? 0 : -1;
  }
  function moveInGrid(grid, event) {
    const rows = cells(grid);
    const y = rows.findIndex((row) => row.includes(document.activeElement));
    if (y < 0) return;
    const x = rows[y].indexOf(document.activeElement);
    const last = rows.at(-1);
    const to = { ArrowRight: [y, x + 1], ArrowLeft: [y, x - 1], ArrowDown: [y + 1, x], ArrowUp: [y - 1, x],
      Home: [event.ctrlKey ? 0 : y, 0],
      End: event.ctrlKey ? [rows.length - 1, last.length - 1] : [y, rows[y].length - 1] }[event.key];
    if (!to) return;
    event.preventDefault();
    const target = rows[to[0]]?.[to[1]];
    if (!target) return;
    enter(target);
    target.focus();
  }
  prepareGrids();
  document.addEventListener("evenkeel:replaced", prepareGrids);
  main.addEventListener("focusin", (event) => { if (event.target.matches("[tabindex]")) enter(event.target); });

  function moveInRows(step) {
    const rows = all("tbody tr", main).map((row) => one("a", row)).filter(Boolean);
    const row = document.activeElement.closest("tr");
    const at = row ? rows.findIndex((link) => row.contains(link)) : -1;
    const target = at < 0 ? rows[step > 0 ? 0 : rows.length - 1] : rows[at + step];
    target?.focus();
  }
  function search() {
    const field = one("input[type=search], input[name=q]", main);
    if (!field) return showPalette();
    field.focus();
    field.select();
  }

  if (bar) {
    const help = one("[data-keys]");
    help.hidden = false;
    help.onclick = showHelp;
  }
  let afterG = 0;
  document.addEventListener("keydown", (event) => {
    const grid = event.target.closest?.("table[data-grid]");
    if (grid && !event.altKey && !event.metaKey) moveInGrid(grid, event);
    if (!bar || event.defaultPrevented || one("dialog[open]")) return;
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      return showPalette();
    }
    if (event.ctrlKey || event.metaKey || event.altKey || localStorage.getItem(KEYS_OFF) !== null) return;
    if (event.target.matches("input, textarea, select, [contenteditable]")) return;
    const isSecond = Date.now() - afterG < 1500;
    afterG = 0;
    if (isSecond) {
      letters().get(event.key)?.click();
      return;
    }
    const act = { "/": search, "?": showHelp, j: () => moveInRows(1), k: () => moveInRows(-1),
      g: () => { afterG = Date.now(); } }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
})();
