// The graph and the stages of `hloforge inspect --html`. What programs hold goes into the page as text only.
"use strict";
(() => {
  const data = JSON.parse(document.getElementById("payload").textContent);
  const byId = (id) => document.getElementById(id);
  const make = (tag, kind, text) => {
    const made = document.createElement(tag);
    if (kind) made.className = kind;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const button = (kind, text, action) => {
    const made = make("button", kind, text);
    made.type = "button";
    made.addEventListener("click", action);
    return made;
  };

  // The graph. Nodes stand in depth-first order; what is below node n are the nodes up to its end.
  const [KIND, NAME, END, SHAPE, WHERE, READS] = [0, 1, 2, 3, 4, 5];
  const PAGE = 300, CHIPS = 12;
  const nodes = data.graph.nodes, words = data.graph.words;
  const word = (n, field) => words[nodes[n][field]];
  const parents = new Int32Array(nodes.length).fill(-1), readers = nodes.map(() => []);
  nodes.forEach((node, n) => {
    for (let child = n + 1; child < node[END]; child = nodes[child][END]) parents[child] = n;
    node[READS].forEach((read) => readers[read].push(n));
  });
  const childrenOf = (n) => {
    const found = [];
    for (let child = n < 0 ? 0 : n + 1; child < (n < 0 ? nodes.length : nodes[n][END]); child = nodes[child][END]) found.push(child);
    return found;
  };
  const shown = new Map();
  let chosen = -1;

  const title = (n) => word(n, NAME) + (word(n, SHAPE) ? " " + word(n, SHAPE) : "");

  // What lies outside of a node and is read inside of it, or the other way round.
  const across = (n, edges) => {
    const found = new Set();
    const end = Math.max(nodes[n][END], n + 1);
    for (let inner = n; inner < end; inner++) for (const other of edges(inner)) if (other < n || other >= end) found.add(other);
    return [...found];
  };
  // Of what lies outside of a scope, the scopes beside it; of an operation, the operations.
  const beside = (n, edges) => {
    if (word(n, KIND) !== "scope") return across(n, edges);
    const holds = (at) => at < 0 || (at <= n && n < nodes[at][END]);
    return [...new Set(across(n, edges).map((other) => { while (!holds(parents[other])) other = parents[other]; return other; }))];
  };

  const chips = (label, found) => {
    const line = make("div");
    if (!found.length) return line;
    line.append(make("span", "dim", label + " "));
    const add = (from, to) => found.slice(from, to).forEach((n) => line.append(button("chip", title(n), () => reveal(n))));
    add(0, CHIPS);
    if (found.length > CHIPS) {
      const rest = button("chip", `${Math.min(found.length, PAGE) - CHIPS} more`, () => { rest.remove(); add(CHIPS, PAGE); });
      line.append(rest);
    }
    return line;
  };

  const list = (children) => {
    const made = make("ul");
    const add = (from) => {
      children.slice(from, from + PAGE).forEach((child) => made.append(item(child)));
      if (children.length > from + PAGE) {
        const rest = make("li");
        rest.append(button("chip", `show the next of ${children.length - from - PAGE} more`, () => { rest.remove(); add(from + PAGE); }));
        made.append(rest);
        made.grow = () => { rest.remove(); add(from + PAGE); };
      } else made.grow = null;
    };
    add(0);
    return made;
  };

  const fill = (n) => {
    const details = shown.get(n);
    if (details.filled) return;
    details.filled = true;
    const more = make("div", "more");
    if (word(n, WHERE)) more.append(make("div", "dim", word(n, WHERE)));
    more.append(chips("reads", beside(n, (inner) => nodes[inner][READS])), chips("read by", beside(n, (inner) => readers[inner])));
    details.append(more);
    const children = childrenOf(n);
    if (children.length) {
      details.inner = list(children);
      details.append(details.inner);
    }
  };

  const item = (n) => {
    const made = make("li"), kind = word(n, KIND);
    const details = make("details", kind), summary = make("summary");
    details.id = `node-${n}`;
    summary.append(make("code", "name", word(n, NAME)));
    if (word(n, SHAPE)) summary.append(" ", make("code", "shape", word(n, SHAPE)));
    if (kind === "scope") summary.append(" ", make("span", "shape", `${data.graph.counts[n]} operations`));
    if (kind === "parameter") summary.append(" ", make("span", "shape", "parameter"));
    details.append(summary);
    shown.set(n, details);
    details.addEventListener("toggle", () => { if (details.open) fill(n); });
    summary.addEventListener("click", () => choose(n));
    made.append(details);
    return made;
  };

  const mark = (found, name, on) => found.forEach((n) => {
    // What is inside of a closed scope shows on the scope.
    for (let at = n; at >= 0; at = parents[at]) if (shown.has(at)) { shown.get(at).classList.toggle(name, on); return; }
  });
  const choose = (n) => {
    document.querySelectorAll(".graph .chosen, .graph .reads, .graph .feeds").forEach((e) => e.classList.remove("chosen", "reads", "feeds"));
    chosen = n;
    mark(across(n, (inner) => nodes[inner][READS]), "reads", true);
    mark(across(n, (inner) => readers[inner]), "feeds", true);
    shown.get(n).classList.add("chosen");
  };

  const reveal = (n) => {
    const path = [];
    for (let at = parents[n]; at >= 0; at = parents[at]) path.unshift(at);
    let holder = byId("outline").firstChild;
    for (const at of [...path, n]) {
      while (!shown.has(at) && holder.grow) holder.grow();
      if (at === n) break;
      shown.get(at).open = true;
      fill(at);
      holder = shown.get(at).inner;
    }
    choose(n);
    shown.get(n).open = true;
    fill(n);
    shown.get(n).querySelector("summary").focus({ preventScroll: true });
    shown.get(n).scrollIntoView({ block: "center" });
  };

  const openScopes = () => {
    // Scopes inside of scopes, as long as the page stays readable.
    const todo = childrenOf(-1);
    while (todo.length && shown.size < 4 * PAGE) {
      const n = todo.shift();
      if (word(n, KIND) !== "scope" || !shown.has(n)) continue;
      shown.get(n).open = true;
      fill(n);
      todo.push(...childrenOf(n));
    }
  };
  const closeAll = () => shown.forEach((details) => { details.open = false; });

  const find = () => {
    const wanted = byId("find").value.trim().toLowerCase(), box = byId("found");
    box.replaceChildren();
    if (!wanted) return;
    const found = [];
    for (let n = 0; n < nodes.length; n++)
      if ([NAME, SHAPE, WHERE].some((field) => word(n, field).toLowerCase().includes(wanted))) found.push(n);
    box.append(make("span", "dim", `${found.length} found `));
    found.slice(0, 50).forEach((n) => box.append(button("chip", title(n), () => reveal(n))));
  };

  byId("outline").append(list(childrenOf(-1)));
  byId("open-all").addEventListener("click", openScopes);
  byId("close-all").addEventListener("click", closeAll);
  byId("find").addEventListener("input", find);

  // The stages. A line is [track, text]; lines of one track are the same line, and tracks keep their order.
  const stages = data.stages, texts = data.texts;
  const CONTEXT = 3, ROWS = 1500;
  const lines = (stage) => {
    const found = [];
    for (let i = 0; i < stages[stage].lines.length; i += 2) found.push([stages[stage].lines[i], stages[stage].lines[i + 1]]);
    return found;
  };

  // Rows of [left text or -1, right text or -1, whether they are one line].
  const compare = (left, right) => {
    const ours = new Set(left.map((line) => line[0])), theirs = new Set(right.map((line) => line[0])), rows = [];
    let i = 0, j = 0;
    while (i < left.length || j < right.length) {
      const gone = [], come = [];
      while (i < left.length && !theirs.has(left[i][0])) gone.push(left[i++][1]);
      while (j < right.length && !ours.has(right[j][0])) come.push(right[j++][1]);
      for (let k = 0; k < Math.max(gone.length, come.length); k++) rows.push([gone[k] ?? -1, come[k] ?? -1, false]);
      if (i < left.length && j < right.length) rows.push([left[i++][1], right[j++][1], true]);
    }
    return rows;
  };

  const cell = (side, kind, text, other) => {
    const made = make("div", `cell ${side} ${kind}`);
    if (other === undefined) { made.textContent = text; return made; }
    let from = 0, end = 0;
    while (from < text.length && text[from] === other[from]) from++;
    while (end < Math.min(text.length, other.length) - from && text[text.length - 1 - end] === other[other.length - 1 - end]) end++;
    const differs = make("mark", "", text.slice(from, text.length - end));
    made.append(text.slice(0, from), differs, text.slice(text.length - end));
    return made;
  };

  const rowOf = ([left, right, one]) => {
    const row = make("div", left === right ? "row same" : "row");
    if (left === right) row.append(cell("left", "", texts[left]), cell("right", "", texts[right]));
    else row.append(
      left < 0 ? cell("left", "empty", "") : cell("left", "gone", texts[left], one ? texts[right] : undefined),
      right < 0 ? cell("right", "empty", "") : cell("right", "come", texts[right], one ? texts[left] : undefined));
    return row;
  };

  // Rows a part at a time, so that a large difference does not stop the browser.
  const put = (place, rows) => {
    const part = document.createDocumentFragment();
    rows.slice(0, ROWS).forEach((row) => part.append(rowOf(row)));
    if (rows.length > ROWS) {
      const rest = button("fold", `… ${rows.length - ROWS} more lines`, () => put(rest, rows.slice(ROWS)));
      part.append(rest);
    }
    place.replaceWith(part);
  };

  const drawStages = () => {
    const left = byId("left").selectedIndex, right = byId("right").selectedIndex;
    const rows = compare(lines(left), lines(right)), box = byId("diff"), parts = [];
    let start = 0;
    const near = new Set();
    rows.forEach(([a, b], i) => { if (a !== b) for (let k = -CONTEXT; k <= CONTEXT; k++) near.add(i + k); });
    rows.forEach((_, i) => {
      if (i > 0 && near.has(i) !== near.has(i - 1)) { parts.push([near.has(i - 1), rows.slice(start, i)]); start = i; }
    });
    if (rows.length) parts.push([near.has(rows.length - 1), rows.slice(start)]);
    box.replaceChildren();
    parts.forEach(([differs, part]) => {
      // A stage beside itself is to be read whole.
      if (differs || left === right) { const place = make("div"); box.append(place); put(place, part); return; }
      const fold = button("fold", `… ${part.length} equal lines`, () => put(fold, part));
      box.append(fold);
    });
    const changed = rows.filter(([a, b]) => a !== b).length;
    const said = right === left + 1 ? stages[right].reason + ". " : "";
    byId("stage-reason").textContent = said + (left === right ? "One stage." : changed ? `${changed} lines differ.` : "No line that is kept differs.");
    byId("previous").disabled = right < 2;
    byId("next").disabled = right >= stages.length - 1;
  };

  const show = (left, right) => {
    byId("left").selectedIndex = left;
    byId("right").selectedIndex = right;
    drawStages();
  };
  for (const side of ["left", "right"]) {
    stages.forEach((stage, i) => byId(side).append(make("option", "", `${i}. ${stage.name}`)));
    byId(side).addEventListener("change", drawStages);
  }
  byId("previous").addEventListener("click", () => show(byId("right").selectedIndex - 2, byId("right").selectedIndex - 1));
  byId("next").addEventListener("click", () => show(byId("right").selectedIndex, byId("right").selectedIndex + 1));
  document.querySelectorAll("[data-stage]").forEach((link) =>
    link.addEventListener("click", () => show(Number(link.dataset.stage) - 1, Number(link.dataset.stage))));
  show(0, Math.min(1, stages.length - 1));
})();
