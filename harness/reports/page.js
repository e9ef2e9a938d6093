// Comforts for the table: evidence opened in place, a filter that stands in the address, arrow keys.
// Everything shown here is already on the page; without this script its links lead there.
"use strict";
(() => {
  const table = document.querySelector(".matrix");
  if (!table) return;
  const heads = [...table.tHead.rows[0].cells];
  const rows = [...table.querySelectorAll("tbody > tr")].filter(
    (row) => row.cells[0].scope === "row",
  );
  const form = document.querySelector(".filter");
  const output = form.querySelector("output");
  const sheet = document.styleSheets[0];
  const ownRules = sheet.cssRules.length;
  const labels = new Map(
    rows.map((row) => {
      const name = row.cells[0];
      return [row, `${name.querySelector("a").textContent} ${name.querySelector("span").textContent}`];
    }),
  );

  const make = (tag, text = "", className = "") => {
    const element = document.createElement(tag);
    element.textContent = text;
    if (className) element.className = className;
    return element;
  };

  // Evidence in place. The row below a mark's row holds a card for each opened mark, in column order.

  const describe = (cell) => {
    const name = cell.parentElement.cells[0];
    const head = heads[cell.cellIndex];
    return {
      case: name.querySelector("a").textContent,
      path: name.querySelector("span").textContent,
      cell: head.querySelector("a").textContent,
      command: [table.dataset.command, head.dataset.arguments, name.dataset.arguments].join(" "),
      source: document.getElementById(name.querySelector("a").hash.slice(1)),
      facts: head.querySelector("a").hash,
      anchor: `#mark:${name.id.slice("row:".length)}:${head.id.slice("cell:".length)}`,
    };
  };

  const copyButton = (read) => {
    const button = make("button", "Copy");
    button.type = "button";
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(read());
        button.textContent = "Copied";
      } catch {
        button.textContent = "Not allowed";
      }
      setTimeout(() => (button.textContent = "Copy"), 1500);
    });
    return button;
  };

  const withCopy = (pre) => {
    const box = make("div", "", "command");
    box.append(pre);
    if (navigator.clipboard) box.append(copyButton(() => pre.textContent));
    return box;
  };

  const makeCard = (cell) => {
    const about = describe(cell);
    const card = make("section", "", "card");
    card.dataset.column = cell.cellIndex;
    const title = make("h3", `${about.case} · ${about.path} · ${about.cell}`);
    const close = make("button", "Close");
    close.type = "button";
    close.addEventListener("click", () => {
      toggle(cell);
      cell.firstElementChild.focus();
    });
    const header = make("header");
    header.append(title, close);
    card.setAttribute("aria-label", title.textContent);
    const exhibit = document.getElementById(cell.firstElementChild.hash.slice(1));
    const body = exhibit.firstElementChild.cloneNode(true);
    const command = make("pre");
    for (const word of about.command.split(" ")) {
      if (command.hasChildNodes()) command.append(" ");
      command.append(make("span", word));
    }
    card.append(header, body, make("h4", "To see it again"), withCopy(command));
    const source = about.source?.querySelector("details");
    if (source) {
      const copy = source.cloneNode(true);
      copy.querySelector("pre").replaceWith(withCopy(copy.querySelector("pre").cloneNode(true)));
      card.append(copy);
    }
    const footer = make("footer");
    for (const [text, target] of [
      ["Link to this mark", about.anchor],
      ["Other marks like it", cell.firstElementChild.hash],
      [`Packages of ${about.cell}`, about.facts],
    ]) {
      const link = make("a", text);
      link.href = target;
      footer.append(link);
    }
    card.append(footer);
    return card;
  };

  const openedRow = (row) => {
    const next = row.nextElementSibling;
    return next?.classList.contains("open") ? next : null;
  };

  const toggle = (cell) => {
    const row = cell.parentElement;
    const link = cell.firstElementChild;
    let opened = openedRow(row);
    const cards = opened?.querySelector(".cards");
    const card = [...(cards?.children ?? [])].find(
      (one) => Number(one.dataset.column) === cell.cellIndex,
    );
    if (card) {
      card.remove();
      link.setAttribute("aria-expanded", "false");
      delete cell.dataset.open;
      if (!cards.children.length) opened.remove();
      return;
    }
    if (!opened) {
      opened = make("tr", "", "open");
      const data = make("td");
      data.colSpan = heads.length;
      data.append(make("div", "", "cards"));
      opened.append(data);
      row.after(opened);
    }
    const made = makeCard(cell);
    const box = opened.querySelector(".cards");
    const after = [...box.children].find((one) => Number(one.dataset.column) > cell.cellIndex);
    box.insertBefore(made, after ?? null);
    link.setAttribute("aria-expanded", "true");
    cell.dataset.open = "";
  };

  table.addEventListener("click", (event) => {
    const link = event.target.closest("tbody > tr:not(.open) > td")?.querySelector("a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    stand(link);
    toggle(link.parentElement);
  });

  // Arrow keys. One mark at a time is in the tab order: the last one that was stood on.

  let standing = null;
  const stand = (link) => {
    if (standing) standing.tabIndex = -1;
    standing = link;
    link.tabIndex = 0;
  };
  const marks = table.querySelectorAll("tbody > tr > td > a");
  for (const link of marks) link.tabIndex = -1;
  for (const word of table.querySelectorAll("td > a > b")) word.closest("td").dataset.differs = "";
  if (marks.length) stand(marks[0]);
  table.addEventListener("focusin", (event) => {
    const link = event.target.closest("tbody > tr:not(.open) > td > a");
    if (link && link !== standing) stand(link);
  });

  const isVisible = (cell) => cell.offsetParent !== null;
  const find = (row, column, rowStep, columnStep) => {
    let [y, x] = [rows.indexOf(row) + rowStep, column + columnStep];
    while (y >= 0 && y < rows.length && x > 0 && x < heads.length) {
      const link = rows[y].cells[x].querySelector("a");
      if (link && isVisible(link)) return link;
      y += rowStep;
      x += columnStep;
    }
    return null;
  };
  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

  table.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const card = event.target.closest(".card");
    if (event.key === "Escape" && card) {
      const row = card.closest("tr").previousElementSibling;
      const cell = row.cells[Number(card.dataset.column)];
      toggle(cell);
      cell.firstElementChild.focus();
      return;
    }
    const link = event.target.closest("tbody > tr:not(.open) > td > a");
    if (!link) return;
    const cell = link.parentElement;
    const row = cell.parentElement;
    let target = null;
    if (event.key in steps) {
      target = find(row, cell.cellIndex, ...steps[event.key]);
    } else if (event.key === "Home") {
      target = find(row, 0, 0, 1);
    } else if (event.key === "End") {
      target = find(row, heads.length, 0, -1);
    } else if (event.key === " ") {
      toggle(cell);
    } else if (event.key === "Escape" && link.ariaExpanded === "true") {
      toggle(cell);
    } else {
      return;
    }
    event.preventDefault();
    target?.focus();
  });

  // The filter. Its state is the part of the address behind #, so that a link keeps it.

  const pattern = (text) => {
    const escaped = text.trim().replace(/[.+?^${}()|[\]\\]/g, "\\$&");
    return new RegExp(escaped.replace(/\*/g, ".*"), "i");
  };
  const words = (text, separator) => text.split(separator).filter((word) => word.trim()).map(pattern);

  // A verdict as a selector of the marks that have it.
  const selector = (verdict) => {
    if (verdict === "differs") return "[data-differs]";
    if (verdict === "fails") return ":is(.u, .w, .e, .c, .t, .o)";
    const option = [...form.verdict.options].find((one) => one.value === verdict);
    return option.dataset.kind ? `.${option.dataset.kind}` : ":not([class])";
  };

  const apply = () => {
    const cases = words(form.case.value, /\s+/);
    const cells = words(form.cell.value, /[\s,]+/);
    const verdict = form.verdict.value;
    const columns = heads.map(
      (head, index) => index === 0 || !cells.length || cells.some((word) => word.test(head.abbr)),
    );
    // Rules of its own rather than a class on each of many thousand marks.
    while (sheet.cssRules.length > ownRules) sheet.deleteRule(ownRules);
    const addRule = (rule) => sheet.insertRule(rule, sheet.cssRules.length);
    const away = columns.flatMap((isShown, index) => (isShown ? [] : [`:nth-child(${index + 1})`]));
    if (away.length) {
      addRule(`.matrix tr:not(.category, .open) > :is(${away.join(",")}) { display: none }`);
    }
    const wanted = verdict && selector(verdict);
    if (verdict) addRule(`.matrix tr:not(.open) > td:not(${wanted}) { background: none; color: var(--soft) }`);
    let shown = 0;
    for (const row of rows) {
      const hits = verdict ? [...row.querySelectorAll(`:scope > td${wanted}`)] : [...row.cells];
      const isShown =
        cases.every((word) => word.test(labels.get(row))) &&
        hits.some((cell) => cell.cellIndex && columns[cell.cellIndex]);
      row.hidden = !isShown;
      const opened = openedRow(row);
      if (opened) opened.hidden = !isShown;
      shown += isShown;
    }
    for (const body of table.tBodies) {
      body.hidden = ![...body.rows].some((row) => labels.has(row) && !row.hidden);
    }
    const visible = columns.filter(Boolean).length - 1;
    output.textContent = `${shown} of ${rows.length} rows, ${visible} of ${heads.length - 1} cells shown`;
    if (standing && !isVisible(standing)) {
      const first = [...marks].find(isVisible);
      if (first) stand(first);
    }
  };

  const write = () => {
    const state = new URLSearchParams();
    for (const name of ["case", "cell", "verdict"]) {
      if (form[name].value) state.set(name, form[name].value);
    }
    const hash = state.toString();
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  };

  let waiting = 0;
  form.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      apply();
      write();
    }, 120);
  });
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("reset", () => {
    setTimeout(() => {
      apply();
      write();
    });
  });

  const findMark = (anchor) => {
    const end = anchor.lastIndexOf(":");
    const name = document.getElementById(`row:${anchor.slice("mark:".length, end)}`);
    const head = document.getElementById(`cell:${anchor.slice(end + 1)}`);
    return name && head ? name.parentElement.cells[head.cellIndex] : null;
  };

  const read = () => {
    const hash = location.hash.slice(1);
    if (hash.startsWith("mark:")) {
      const cell = findMark(hash);
      const link = cell?.firstElementChild;
      if (!link) return;
      if (!isVisible(link)) {
        // Not form.reset(): its listener would take the mark out of the address.
        for (const name of ["case", "cell", "verdict"]) form[name].value = "";
        apply();
      }
      if (link.ariaExpanded !== "true") toggle(cell);
      link.focus({ preventScroll: true });
      cell.scrollIntoView({ block: "center", inline: "nearest" });
    } else if (hash.includes("=")) {
      const state = new URLSearchParams(hash);
      for (const name of ["case", "cell", "verdict"]) form[name].value = state.get(name) ?? "";
      if (form.verdict.selectedIndex < 0) form.verdict.value = "";
      apply();
    }
  };

  form.hidden = false;
  document.querySelector(".keys").hidden = false;
  apply();
  read();
  window.addEventListener("hashchange", read);
})();
