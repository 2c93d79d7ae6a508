"use strict";
// What is seen. worker.js computes. All names come from files: they become text, never markup.
(() => {
  const $ = (id) => document.getElementById(id);
  const most = 5; // classes that are shown at once
  const mostNamed = 8; // names in a line
  const mostRows = 200; // rows of a table that are shown

  // make returns an element with texts and other elements in it.
  function make(tag, props, ...inside) {
    const e = document.createElement(tag);
    for (const [k, v] of Object.entries(props || {})) k in e ? (e[k] = v) : e.setAttribute(k, v);
    e.append(...inside.filter((x) => x !== null && x !== undefined));
    return e;
  }

  function fail(text) {
    $("failure").textContent = text;
    $("failure").hidden = false;
    $("loading").hidden = true;
  }

  const percent = (p) => (p < 0.0005 ? "< 0.1 %" : p > 0.9995 ? "> 99.9 %" : (100 * p).toFixed(1) + " %");
  const short = (v) => (v === 0 ? "0" : Math.abs(v) >= 1e5 || Math.abs(v) < 1e-4 ? v.toExponential(2) : Number(v.toPrecision(4)).toString());
  const size = (bytes) => (bytes < 1e5 ? (bytes / 1e3).toFixed(1) + " kB" : (bytes / 1e6).toFixed(1) + " MB");
  // number is a number with all its digits as the title, and the column of score that has it.
  const number = (column, v, text = short(v)) => make("span", { title: String(v), className: "value", "data-of": column }, text);

  let page, worker, jobs = new Map(), next = 0;

  function ask(job, more, transfer) {
    return new Promise((done, failed) => {
      jobs.set(++next, { done, failed });
      worker.postMessage({ id: next, job, ...more }, transfer || []);
    });
  }

  function heard({ data }) {
    if (data.step) {
      $("step").textContent = data.step;
      $("progress").value = data.part;
    } else if (data.rows) {
      $("busy").textContent = `${data.rows} of ${data.of} rows…`;
    } else {
      const job = jobs.get(data.id);
      jobs.delete(data.id);
      data.error === undefined ? job.done(data.result) : job.failed(new Error(data.error));
    }
  }

  async function start() {
    if (location.protocol === "file:") {
      fail("This page was opened as a file, and browsers do not let a file load the model next to it.\nStart a web server in this folder, such as  python3 -m http.server  and open  http://localhost:8000");
      return;
    }
    try {
      const answer = await fetch("page.json");
      if (!answer.ok) throw new Error(`page.json: the server answers ${answer.status}`);
      page = await answer.json();
      describe();
      const here = new URL("worker.js", location.href).href;
      worker = new Worker(URL.createObjectURL(new Blob([`import ${JSON.stringify(here)};`], { type: "text/javascript" })), { type: "module" });
      worker.onmessage = heard;
      worker.onerror = (e) => fail("The code of this page could not be loaded: " + (e.message || "the browser does not say why"));
      await ask("open", { page });
    } catch (e) {
      fail("The model could not be loaded: " + e.message);
      return;
    }
    $("loading").hidden = true;
    $("drop").hidden = false;
    document.body.dataset.state = "ready";
  }

  const pictures = () => Boolean(page.network.picture);

  function describe() {
    document.title = $("title").textContent = page.title;
    const kind = { classes: ["class", "classes"], binary: ["class", "classes"], labels: ["label", "labels"], regression: ["target", "targets"] }[page.task];
    const count = (n, [one, many]) => `${n} ${n === 1 ? one : many}`;
    $("about").textContent = `${count(page.members, ["network", "networks"])}, ${count(page.names.length, kind)}. Everything runs in this browser.`;
    $("ask").textContent = pictures() ? "Drop pictures here" : "Drop a table here: CSV, TSV or JSON lines";
    $("file").accept = pictures() ? "image/*,.tif,.tiff,.pgm,.ppm,.bmp" : ".csv,.tsv,.jsonl";
    for (const s of page.preprocessing || []) $("steps").append(make("li", {}, s));
    if (page.promise) $("about").after(make("p", {}, make("strong", {}, "Promise: "), page.promise + "."));
    const facts = [["calibration", page.calibration], ["threshold", page.threshold && `${page.names[1]} from a probability of ${short(page.threshold)}`], ["members", page.members], ["model", `${page.model}, ${size(page.bytes)}`], ["made by", page.producer], ["runs on", page.runtime + ", in WebAssembly, with one thread. The network takes the same numbers as in swagwrap score, bit for bit. Its results differ by rounding, about 0.000001"]];
    for (const [k, v] of facts) if (v) $("facts").append(make("dt", {}, k), make("dd", {}, String(v)));
    $("model").hidden = false;
  }

  // An Example has the outputs of example i.
  function example(outputs, i) {
    const of = (name) => outputs[name] && outputs[name].data.slice(i * outputs[name].width, (i + 1) * outputs[name].width);
    const x = { prob: of("prob"), entropy: of("entropy"), mi: of("mutual_information"), mean: of("mean"), std: of("std"), noise: of("aleatoric_std"), disagreement: of("epistemic_std"), set: of("set"), lower: of("lower"), upper: of("upper"), abstain: of("abstain") };
    if (x.prob) x.order = x.prob.map((_, k) => k).sort((a, b) => x.prob[b] - x.prob[a] || a - b);
    x.abstains = Boolean(x.abstain && x.abstain[0]);
    return x;
  }

  // answers returns the classes or labels that are predicted.
  function answers(x) {
    if (page.task === "binary") return [x.prob[1] >= (page.threshold || 0.5) ? 1 : 0];
    if (page.task === "labels") return x.order.filter((k) => x.prob[k] >= 0.5);
    return x.order.slice(0, 1);
  }

  // columnOf names the column of score with a number of class, label or target k.
  const columnOf = (stem, k) => (stem === "p" ? (page.task === "labels" ? `probability_${k}` : `p_${k}`) : page.names.length === 1 ? stem : `${stem}_${k}`);
  const inSet = (x) => x.order.filter((k) => x.set[k]);
  function naming(list) {
    const names = list.slice(0, mostNamed).map((k) => page.names[k]);
    return (names.join(" · ") || "none") + (list.length > mostNamed ? ` and ${list.length - mostNamed} more` : "");
  }

  function bars(x, order) {
    return order.map((k) => {
      const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      for (const [n, v] of [["viewBox", "0 0 100 4"], ["preserveAspectRatio", "none"], ["aria-hidden", "true"]]) svg.setAttribute(n, v);
      rect.setAttribute("width", String(100 * x.prob[k]));
      rect.setAttribute("height", "4");
      svg.append(rect);
      const chosen = x.set ? x.set[k] : answers(x).includes(k);
      return make("li", { className: chosen ? "in" : "" }, make("span", { className: "label" }, page.names[k], x.set && x.set[k] ? make("span", { className: "mark" }, " in the set") : null), number(columnOf("p", k), x.prob[k], percent(x.prob[k])), svg);
    });
  }

  function classBody(x) {
    const body = [make("p", { className: "answer" }, answers(x).map((k) => page.names[k]).join(" · ") || "no label")];
    if (x.abstains) body.push(make("p", { className: "abstain" }, "Too unsure: no answer is promised"));
    body.push(make("ul", { className: "bars" }, ...bars(x, x.order.slice(0, most))));
    if (x.order.length > most) {
      const all = make("ul", { className: "bars" }), more = make("details", {}, make("summary", {}, `All ${x.order.length}`), all);
      more.addEventListener("toggle", () => all.children.length || all.append(...bars(x, x.order.slice())), { once: true });
      body.push(more);
    }
    if (x.set) body.push(make("p", { className: "note set" }, `Set (${inSet(x).length} of ${x.set.length}): ${naming(inSet(x))}`));
    return body;
  }

  function numberBody(x) {
    return x.mean.map((mean, k) =>
      make("div", {}, make("p", { className: "note" }, page.names[k]), make("p", { className: "answer" }, number(columnOf("mean", k), mean), ...(x.std ? [" ± ", number(columnOf("std", k), x.std[k])] : [])),
        x.lower ? make("p", { className: "note" }, "Interval: ", number(columnOf("lower", k), x.lower[k]), " to ", number(columnOf("upper", k), x.upper[k])) : null,
        make("p", { className: "note" }, ...(x.noise ? ["noise ", number(columnOf("aleatoric_std", k), x.noise[k])] : ["noise unknown"]), ", disagreement ", number(columnOf("epistemic_std", k), x.disagreement[k]))));
  }

  function uncertainty(x) {
    if (!x.entropy) return null;
    const one = (name, column, v) => make("div", {}, make("dt", {}, name), make("dd", {}, number(column, v)));
    return make("dl", { className: "numbers" }, one("entropy (nats)", "predictive_entropy", x.entropy[0]), one("mutual information (nats)", "mutual_information", x.mi[0]));
  }

  function pictureCard(name, r) {
    const canvas = make("canvas", { width: r.seen.width, height: r.seen.height, className: r.seen.width < 144 ? "small" : "", role: "img" });
    canvas.setAttribute("aria-label", "what the network sees of " + name);
    canvas.getContext("2d").putImageData(new ImageData(new Uint8ClampedArray(r.seen.rgba), r.seen.width, r.seen.height), 0, 0);
    const x = example(r.outputs, 0);
    return make("article", { className: "card", "data-name": name },
      make("figure", {}, canvas, make("figcaption", {}, make("span", { className: "name" }, name), `${r.kind}, ${r.width}×${r.height}. Shown: what the network sees, ${r.seen.width}×${r.seen.height}`)),
      make("div", { className: "body" }, ...(x.mean ? numberBody(x) : classBody(x)), uncertainty(x)));
  }

  // columns are those of a table of results: a name, whether it is a number, and the cell of an example.
  function columns(outputs) {
    const list = [], add = (name, text, of) => list.push({ name, text, of });
    if (outputs.prob) {
      add(page.task === "labels" ? "labels" : "prediction", true, (x) => naming(answers(x)) );
      add("probability", false, (x) => (page.task === "labels" ? x.prob[x.order[0]] : x.prob[answers(x)[0]]));
      add("entropy", false, (x) => x.entropy[0]);
      add("mutual information", false, (x) => x.mi[0]);
      if (outputs.set) add("set", true, (x) => naming(inSet(x)));
    } else {
      page.names.forEach((name, k) => {
        add(name, false, (x) => x.mean[k]);
        if (outputs.std) add("standard deviation", false, (x) => x.std[k]);
        else add("disagreement", false, (x) => x.disagreement[k]);
        if (outputs.lower) add("at least", false, (x) => x.lower[k]), add("at most", false, (x) => x.upper[k]);
      });
    }
    if (outputs.abstain) add("abstain", true, (x) => (x.abstains ? "yes" : ""));
    return list;
  }

  // csv is the whole result, in the columns of score.
  function csv(name, r) {
    const guard = (s) => (/^[=+\-@\t\r]/.test(s) ? "'" + s : s), quote = (s) => (/[",\r\n]/.test(s) ? `"${s.replaceAll('"', '""')}"` : s);
    const lines = [];
    for (let i = 0; i < r.rows; i++) {
      const x = example(r.outputs, i), row = { path: guard(`${name}[${i}]`) };
      const each = (stem, values) => values && values.forEach((v, k) => (row[columnOf(stem, k)] = v));
      if (x.prob) {
        if (page.task !== "labels") row.prediction = answers(x)[0];
        Object.assign(row, { predictive_entropy: x.entropy[0], mutual_information: x.mi[0] });
        each("p", x.prob);
        if (x.set) Object.assign(row, { set: x.set.flatMap((v, k) => (v ? [k] : [])).join(" "), set_size: inSet(x).length });
      }
      for (const [stem, values] of [["mean", x.mean], ["std", x.std], ["aleatoric_std", x.noise], ["epistemic_std", x.disagreement], ["lower", x.lower], ["upper", x.upper]]) each(stem, values);
      if (x.abstain) row.abstain = x.abstains;
      if (!i) lines.push(Object.keys(row).join(","));
      lines.push(Object.values(row).map((v) => quote(String(v))).join(","));
    }
    return lines.join("\n") + "\n";
  }

  function tableCard(name, r) {
    const list = columns(r.outputs);
    const cell = (c, x) => {
      const v = c.of(x);
      return c.text ? make("td", { className: "text" }, v) : make("td", { className: "number", title: String(v) }, c.name === "probability" ? percent(v) : short(v));
    };
    const body = make("tbody", {});
    for (let i = 0; i < Math.min(r.rows, mostRows); i++) {
      const x = example(r.outputs, i);
      body.append(make("tr", {}, make("td", { className: "number" }, String(i)), ...list.map((c) => cell(c, x))));
    }
    const head = make("thead", {}, make("tr", {}, make("th", { className: "number" }, "row"), ...list.map((c) => make("th", { className: c.text ? "" : "number" }, c.name))));
    const save = make("button", { type: "button" }, "Save all as CSV");
    save.addEventListener("click", () => {
      const url = URL.createObjectURL(new Blob([csv(name, r)], { type: "text/csv" }));
      make("a", { href: url, download: name.replace(/\.[^.]*$/, "") + "-predictions.csv" }).click();
      setTimeout(() => URL.revokeObjectURL(url), 60000);
    });
    const notes = [`${r.rows} ${r.rows === 1 ? "row" : "rows"}` + (r.rows > mostRows ? `, the first ${mostRows} are shown` : "")];
    if (r.left && r.left.length) notes.push("not used: columns " + r.left.slice(0, mostNamed).join(", ") + (r.left.length > mostNamed ? ` and ${r.left.length - mostNamed} more` : ""));
    return make("article", { className: "card wide", "data-name": name }, make("span", { className: "name" }, name), make("p", { className: "note" }, notes.join("; ")),
      make("div", { className: "scroll", tabIndex: 0 }, make("table", {}, head, body)), make("p", { className: "hint", hidden: true }, "The table scrolls sideways."), save);
  }

  // take reads files, one after the other. The latest files come first, in their order.
  async function take(files) {
    const before = $("results").firstChild, show = (card) => $("results").insertBefore(card, before);
    for (const [i, f] of [...files].entries()) {
      $("busy").textContent = files.length > 1 ? `${i + 1} of ${files.length}: ${f.name}…` : `${f.name}…`;
      try {
        const bytes = await f.arrayBuffer();
        const result = await ask(pictures() ? "picture" : "table", { name: f.name, bytes }, [bytes]);
        const card = show((pictures() ? pictureCard : tableCard)(f.name, result)), scroll = card.querySelector(".scroll");
        if (scroll) scroll.nextElementSibling.hidden = scroll.scrollWidth <= scroll.clientWidth;
      } catch (e) {
        const text = e.message.startsWith(f.name + ": ") ? e.message : `${f.name}: ${e.message}`;
        show(make("article", { className: "card wide", "data-name": f.name }, make("p", { className: "error" }, text)));
      }
    }
    $("busy").textContent = "";
  }

  let queue = Promise.resolve();
  const later = (files) => (queue = queue.then(() => take(files)));
  $("file").addEventListener("change", () => {
    later([...$("file").files]);
    $("file").value = "";
  });
  for (const kind of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(kind, (e) => {
      e.preventDefault();
      $("drop").classList.toggle("over", kind === "dragover");
      if (kind === "drop" && !$("drop").hidden) later([...e.dataTransfer.files]);
    });
  }
  start();
})();
