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

  const chips = (label, found, action) => {
    const line = make("div");
    if (!found.length) return line;
    line.append(make("span", "dim", label + " "));
    const add = (from, to) => found.slice(from, to).forEach((n) => line.append(button("chip", title(n), () => action(n))));
    add(0, CHIPS);
    if (found.length > CHIPS) {
      const rest = button("chip", `${Math.min(found.length, PAGE) - CHIPS} more`, () => { rest.remove(); add(CHIPS, PAGE); });
      line.append(rest);
    }
    return line;
  };

  // Where a node stands in the source, what passes do to its kind, its time, and its neighbours.
  const describe = (box, n, action) => {
    const lowered = word(n, KIND) === "operation" && data.graph.lowered[word(n, NAME)], took = data.graph.times[n];
    if (word(n, WHERE)) box.append(make("div", "dim", word(n, WHERE)));
    if (lowered) box.append(make("div", "", lowered));
    if (took) box.append(make("div", "", `${took} of a call in the profile`));
    box.append(chips("reads", beside(n, (inner) => nodes[inner][READS]), action));
    box.append(chips("read by", beside(n, (inner) => readers[inner]), action));
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
    describe(more, n, reveal);
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

  // The drawing: what lies directly in one scope, and dashed what it exchanges values with.
  const SVG = "http://www.w3.org/2000/svg", DRAWN = 200, OUTSIDE = 24, LETTERS = 30;
  const drawn = (parent, tag, attributes, text) => {
    const made = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
    if (text !== undefined) made.textContent = text;
    parent.append(made);
    return made;
  };
  const short = (text) => (text.length > LETTERS ? `${text.slice(0, LETTERS - 1)}…` : text);
  let place = -1, scale = 1;

  // Which node of a drawing stands for a node: one directly in the scope, or one beside the scope or around it.
  const standsFor = (n, scope) => {
    // What an operation hands to its body is the operation.
    if (n === scope) return n;
    const holds = (at) => at < 0 || (at <= n && n < nodes[at][END]);
    const inside = holds(scope);
    let at = n;
    while (inside ? parents[at] !== scope : parents[at] >= 0 && !(parents[at] <= scope && scope < nodes[parents[at]][END])) at = parents[at];
    return at;
  };

  const linesOf = (n) => {
    const kind = word(n, KIND), second = kind === "scope" ? `${data.graph.counts[n]} operations` : word(n, SHAPE);
    return [short(word(n, NAME).replace(/^stablehlo\./, "")), short(data.graph.times[n] ? `${second} ${data.graph.times[n]}` : second)];
  };

  // The nodes and edges of a scope; nodes outside come after those inside.
  const graphOf = (scope) => {
    const inside = childrenOf(scope), left = inside.length - DRAWN, kept = new Set(inside.slice(0, DRAWN));
    const outside = new Set(), edges = new Map();
    const at = (n) => {
      const found = standsFor(n, scope);
      if (kept.has(found)) return found;
      if (parents[found] === scope || found === scope || (!outside.has(found) && outside.size >= OUTSIDE)) return -1;
      outside.add(found);
      return found;
    };
    const connect = (from, to) => { if (from >= 0 && to >= 0 && from !== to) edges.set(`${from} ${to}`, [from, to]); };
    for (const child of kept)
      for (let n = child; n < Math.max(nodes[child][END], child + 1); n++) {
        nodes[n][READS].forEach((read) => connect(at(read), child));
        readers[n].forEach((reader) => connect(child, at(reader)));
      }
    return { inside: [...kept], outside: [...outside], edges: [...edges.values()], left: Math.max(0, left) };
  };

  const zoom = (by) => {
    scale = Math.min(3, Math.max(0.2, scale * by));
    const svg = byId("drawing").querySelector("svg");
    if (!svg) return;
    svg.setAttribute("width", svg.viewBox.baseVal.width * scale);
    svg.setAttribute("height", svg.viewBox.baseVal.height * scale);
  };

  const drawPath = (scope) => {
    const path = [];
    for (let at = scope; at >= 0; at = parents[at]) path.unshift(at);
    byId("path").replaceChildren(button("chip", "whole program", () => draw(-1)));
    path.forEach((at) => byId("path").append("/ ", button("chip", word(at, NAME), () => draw(at))));
  };

  const draw = (scope) => {
    place = scope;
    drawPath(scope);
    byId("about").replaceChildren();
    const { inside, outside, edges, left } = graphOf(scope);
    const graph = new dagre.graphlib.Graph();
    graph.setGraph({ nodesep: 14, ranksep: 26, marginx: 12, marginy: 12 });
    graph.setDefaultEdgeLabel(() => ({}));
    for (const n of [...inside, ...outside]) {
      const lines = linesOf(n);
      graph.setNode(String(n), { lines, width: 18 + 7.4 * Math.max(...lines.map((line) => line.length)), height: lines[1] ? 40 : 26 });
    }
    edges.forEach(([from, to]) => graph.setEdge(String(from), String(to)));
    dagre.layout(graph);
    const { width, height } = graph.graph();
    const svg = drawn(document.createDocumentFragment(), "svg", { viewBox: `0 0 ${width} ${height}`, role: "group" });
    const tip = { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" };
    drawn(drawn(drawn(svg, "defs", {}), "marker", tip), "path", { d: "M0 0L8 4L0 8Z" });
    for (const { v, w } of graph.edges()) {
      const points = graph.edge(v, w).points.map(({ x, y }) => `${x.toFixed(1)} ${y.toFixed(1)}`);
      drawn(svg, "path", { d: `M${points.join("L")}`, "marker-end": "url(#tip)", "data-from": v, "data-to": w });
    }
    for (const n of [...inside, ...outside]) {
      const { x, y, width: wide, height: high, lines } = graph.node(String(n));
      const beyond = parents[n] === scope ? "" : " outside";
      const group = drawn(svg, "g", { class: `node ${word(n, KIND)}${beyond}`, "data-node": n, tabindex: 0, role: "button", "aria-label": title(n) });
      drawn(group, "rect", { x: x - wide / 2, y: y - high / 2, width: wide, height: high, rx: 4 });
      drawn(group, "text", { x, y: lines[1] ? y - 3 : y + 4, class: "title" }, lines[0]);
      if (lines[1]) drawn(group, "text", { x, y: y + 13, class: "small" }, lines[1]);
      drawn(group, "title", {}, title(n));
      group.addEventListener("click", () => about(n));
      group.addEventListener("dblclick", () => enter(n));
      group.addEventListener("keydown", (event) => { if (event.key === "Enter") about(n); });
    }
    byId("drawing").replaceChildren(svg);
    byId("drawn").textContent = left ? `${left} further nodes of this scope are not drawn; the outline has them.` : "";
    zoom(1);
  };

  const enter = (n) => { if (childrenOf(n).length) draw(n); };
  const go = (n) => { if (parents[n] !== place) draw(parents[n]); about(n); };
  const about = (n) => {
    const box = byId("about"), svg = byId("drawing");
    svg.querySelectorAll(".chosen, .reads, .feeds").forEach((found) => found.classList.remove("chosen", "reads", "feeds"));
    const markNode = (other, name) => svg.querySelector(`[data-node="${other}"]`)?.classList.add(name);
    markNode(n, "chosen");
    svg.querySelectorAll(`path[data-to="${n}"]`).forEach((edge) => { edge.classList.add("reads"); markNode(edge.dataset.from, "reads"); });
    svg.querySelectorAll(`path[data-from="${n}"]`).forEach((edge) => { edge.classList.add("feeds"); markNode(edge.dataset.to, "feeds"); });
    box.replaceChildren(make("strong", "mono", title(n)));
    describe(box, n, go);
    if (childrenOf(n).length) box.append(button("chip", "Draw what is inside", () => draw(n)));
    box.append(button("chip", "Show in the outline", () => reveal(n)));
  };

  // A scope around the whole program says little.
  let first = -1;
  for (;;) {
    const inner = childrenOf(first).filter((n) => word(n, KIND) !== "parameter");
    if (inner.length !== 1 || word(inner[0], KIND) !== "scope") break;
    first = inner[0];
  }
  draw(first);
  byId("smaller").addEventListener("click", () => zoom(1 / 1.25));
  byId("larger").addEventListener("click", () => zoom(1.25));
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
