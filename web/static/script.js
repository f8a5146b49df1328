"use strict";
// What pages do faster with script: plans in a dialogue, keys, and news. Without it all of them work, too.
// Nothing here makes markup of text: pages that come are parsed by the browser as documents, and moved.
(() => {
  const base = document.querySelector("meta[name=decree]").dataset.base;
  const live = document.getElementById("live");
  const all = (query, of = document) => [...of.querySelectorAll(query)];
  const make = (name, attributes = {}, ...children) => {
    const e = document.createElement(name);
    for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
    e.append(...children);
    return e;
  };
  const say = (text) => { if (live) live.textContent = text; };

  // Requests, whose answers are pages.
  const send = (form, submitter, address) => new Promise((done, failed) => {
    const data = new URLSearchParams(new FormData(form));
    if (submitter && submitter.name) data.append(submitter.name, submitter.value);
    const x = new XMLHttpRequest();
    x.open("POST", address);
    x.responseType = "document";
    x.onload = () => done(x);
    x.onerror = () => failed(new Error("the server does not answer: is 'decree serve' still running?"));
    x.send(data);
  });

  // A dialogue shows the middle of a page. The browser keeps the focus in it; when it closes the focus
  // goes back to where it came from.
  let opener = null;
  let row = "";
  let dialogue = null;
  const open = (content, title) => {
    if (!dialogue) {
      dialogue = make("dialog", { tabindex: "-1" });
      dialogue.addEventListener("close", () => {
        dialogue.replaceChildren();
        if (opener && opener.isConnected) opener.focus();
        opener = null;
      });
      document.body.append(dialogue);
    }
    dialogue.replaceChildren(content);
    dialogue.setAttribute("aria-labelledby", title);
    if (!dialogue.open) dialogue.showModal();
    const first = dialogue.querySelector("button.main:not(:disabled)") || dialogue.querySelector("[data-close], button, a") || dialogue;
    first.focus();
  };
  // Names within a page that comes must not be those of this one.
  const renamed = (content) => {
    for (const e of [content, ...all("*", content)]) {
      for (const name of ["id", "for", "aria-labelledby", "aria-describedby", "headers"]) {
        if (e.hasAttribute(name)) e.setAttribute(name, e.getAttribute(name).split(" ").map((id) => "d-" + id).join(" "));
      }
      const href = e.getAttribute("href");
      if (href && href.startsWith("#")) e.setAttribute("href", "#d-" + href.slice(1));
    }
    return content;
  };
  const show = (page) => {
    const main = page && (page.querySelector(".plan") || page.querySelector("main"));
    if (!main) throw new Error("the answer cannot be shown");
    const content = renamed(document.importNode(main, true));
    if (content.localName === "main") { // an error
      const box = make("div");
      box.append(...content.childNodes);
      if (!box.querySelector("[data-close]")) box.append(make("p", { class: "actions" }, make("button", { "data-close": "" }, "Close")));
      const h = box.querySelector("h1");
      if (h) h.id = "d-plan-title";
      open(box, "d-plan-title");
      return;
    }
    open(content, "d-plan-title");
  };
  const failed = (error) => {
    open(make("div", {}, make("h1", { id: "d-plan-title" }, "It did not work"), make("p", { class: "failure", role: "alert" }, error.message),
      make("p", { class: "actions" }, make("button", { "data-close": "" }, "Close"))), "d-plan-title");
  };

  // Forms that ask for a plan, and the one that has it performed.
  document.addEventListener("submit", async (event) => {
    const form = event.target;
    const button = event.submitter;
    if (!form.matches("[data-dialogue]")) return;
    // What is marked in a plan is planned, and shown, before it is done.
    const performs = button && button.hasAttribute("data-perform") && !form.querySelector("input[name=mark]:checked"), asks = !performs;
    if (performs && !form.closest("dialog")) return;
    event.preventDefault();
    if (asks && !form.closest("dialog")) {
      opener = button || document.activeElement;
      const at = opener.closest && opener.closest("[id^=r-]");
      row = at ? at.id : "";
    }
    const busy = performs ? working() : null;
    if (button) button.disabled = true;
    say(performs ? "Working" : "Planning");
    try {
      const x = await send(form, button, performs ? button.getAttribute("formaction") : form.getAttribute("action"));
      if (performs && x.status < 400) {
        say("Done");
        const here = location.href.split("#")[0];
        location.assign(x.responseURL + (row ? "#" + row : ""));
        if (x.responseURL.split("#")[0] === here) location.reload(); // another fragment alone loads nothing
        return;
      }
      show(x.response);
      say("");
    } catch (error) {
      failed(error);
    } finally {
      if (button) button.disabled = false;
      if (busy) busy();
    }
  });
  document.addEventListener("click", (event) => {
    const close = event.target.closest("[data-close]");
    if (close && close.closest("dialog")) {
      event.preventDefault();
      dialogue.close();
    }
  });

  // While it works the dialogue says how far it is.
  let bar = null;
  const working = () => {
    const label = make("p", { role: "status" }, "Working…");
    bar = make("progress", { max: "100", "aria-label": "How far it is" });
    const box = make("div", { class: "working" }, label, bar);
    bar.label = label;
    dialogue.querySelector(".actions").after(box);
    return () => { box.remove(); bar = null; };
  };
  const progress = (p) => {
    if (!bar) return;
    bar.label.textContent = p.percent < 0 ? `${p.phase}…` : `${p.phase}: ${p.percent} %`;
    if (p.percent < 0) bar.removeAttribute("value"); else bar.value = p.percent;
  };

  // News, while the page is looked at: a browser has few connections to one server.
  const newer = document.getElementById("newer");
  const seen = new Set();
  let events = null;
  const listen = () => {
    if (document.hidden || events) return;
    const timeline = document.querySelector("[data-newest]"); // what is newer than the page is new, also if it came before this
    events = new EventSource(base + "/api/v1/events" + (timeline ? "?after=" + encodeURIComponent(timeline.dataset.newest) : ""));
    events.addEventListener("progress", (e) => progress(JSON.parse(e.data)));
    events.addEventListener("record", (e) => {
      seen.add(JSON.parse(e.data).id);
      if (!newer || bar) return;
      newer.hidden = false;
      newer.firstElementChild.textContent = `${seen.size} new`;
      say(`${seen.size} new`);
    });
  };
  const hush = () => { if (events) { events.close(); events = null; } };
  document.addEventListener("visibilitychange", () => (document.hidden ? hush() : listen()));
  addEventListener("pagehide", hush);
  addEventListener("pageshow", listen);
  listen();

  // A file that is marked is marked with all of its hunks, a directory with all below it. How much is marked is said.
  document.addEventListener("change", (event) => {
    const box = event.target;
    if (box.name !== "mark" || !box.form) return;
    const boxes = boxesOf(box.form);
    if (!box.hasAttribute("data-hunk")) {
      for (const b of boxes) if (path(b) === path(box) || path(b).startsWith(path(box) + "%2F")) b.checked = box.checked;
    }
    if (!box.checked) { // nor is what it is a part of: a plan takes all of that
      for (const b of boxes) if (!b.hasAttribute("data-hunk") && (path(b) === path(box) || path(box).startsWith(path(b) + "%2F"))) b.checked = false;
    }
    counted(box.form);
  });
  const boxesOf = (form) => all("input[name=mark]", form);
  const path = (b) => b.value.slice(b.value.indexOf(":") + 1);
  const counted = (form) => {
    const count = form.querySelector("[data-marks]"), boxes = boxesOf(form);
    if (!count) return;
    const paths = (some) => new Set(some.map(path)).size;
    const marked = paths(boxes.filter((b) => b.checked)), hunks = boxes.filter((b) => b.checked && b.hasAttribute("data-hunk")).length;
    count.textContent = marked === 0 ? "Mark files and hunks below." : `${marked} of ${paths(boxes)} marked, ${hunks} ${hunks === 1 ? "hunk" : "hunks"}`;
    say(count.textContent);
  };
  // The directory of the file whose box has the focus is marked with all below it, or its marks are taken away.
  const markDirectory = () => {
    const box = document.activeElement;
    if (!box || box.name !== "mark" || !box.form) return false;
    const on = !box.checked, boxes = boxesOf(box.form), of = path(box);
    const below = boxes.some((b) => path(b).startsWith(of + "%2F")) ? of : of.slice(0, Math.max(0, of.lastIndexOf("%2F")));
    const inside = (b) => below === "" || path(b) === below || path(b).startsWith(below + "%2F");
    for (const b of boxes) if (inside(b)) b.checked = on;
    box.dispatchEvent(new Event("change", { bubbles: true }));
    return true;
  };
  // The next hunk, or the one before: its box has the focus then.
  const hunk = (step) => {
    const list = all("input[data-hunk]", dialogue && dialogue.open ? dialogue : document).filter((e) => e.getClientRects().length > 0);
    if (list.length === 0) return false;
    const at = list.indexOf(document.activeElement);
    const to = list[Math.max(0, Math.min(list.length - 1, at + step))];
    to.focus();
    to.scrollIntoView({ block: "center" });
    return true;
  };
  const copy = () => {
    const command = all(".command", dialogue && dialogue.open ? dialogue : document)[0];
    if (!command || !navigator.clipboard) return false;
    navigator.clipboard.writeText(command.textContent).then(() => say("Copied"), () => say("It cannot be copied"));
    return true;
  };

  // Keys. Letters are none while somebody writes.
  const rows = () => all(".timeline a.cells, .timeline summary, .talk h2 a, .files a, .list tbody a")
    .filter((e) => e.getClientRects().length > 0 && !e.closest("details:not([open]) > :not(summary)"));
  const go = (step) => {
    const list = rows();
    if (list.length === 0) return;
    const at = list.indexOf(document.activeElement);
    const to = step === "first" ? 0 : step === "last" ? list.length - 1 : Math.max(0, Math.min(list.length - 1, at + step));
    list[to].focus();
    list[to].scrollIntoView({ block: "nearest" });
  };
  const help = () => {
    const keys = [["j, k, arrows", "the next row, the one before"], ["g, G", "the first row, the last"], ["Enter", "open it"], ["/", "filter"],
      ["R", "restore"], ["r", "revert, or what of it is marked"], ["a", "apply"], ["p", "publish"], ["x", "discard"], ["c", "create a checkpoint"], ["l", "label"],
      ["b", "where lines come from"], ["u, U", "undo, redo, where the page offers it"], ["n, N", "the next hunk, the one before"], ["d", "mark the directory of the box that has the focus"],
      ["y", "do what the dialogue says"], ["o, f", "at a conflict: the others alone, overwrite the edits"], ["Y", "copy the command"], ["h", "health"], ["Esc", "close the dialogue"], ["?", "this list"]];
    const list = make("dl", { class: "facts" });
    for (const [k, what] of keys) list.append(make("div", {}, make("dt", {}, make("kbd", {}, k)), make("dd", {}, what)));
    opener = document.activeElement;
    open(make("div", {}, make("h1", { id: "d-plan-title" }, "Keys"), list, make("p", { class: "actions" }, make("button", { "data-close": "" }, "Close"))), "d-plan-title");
  };
  const press = (key) => {
    const place = dialogue && dialogue.open ? dialogue : document;
    const here = document.activeElement && document.activeElement.closest(".row, .card");
    // What is marked in a diff is what r, a and p are about, as on the terminal.
    const box = place === document && document.querySelector("input[name=mark]:checked");
    const operation = { r: "revert", a: "apply", p: "publish" }[key];
    const marked = box && operation && box.form.querySelector(`button[name=operation][value=${operation}]`);
    const mine = here && key === "R" && here.querySelector("button.quiet:not(:disabled)");
    const e = marked || mine || all(`[data-key="${key}"]`, here || place)[0] || all(`[data-key="${key}"]`, place)[0];
    if (!e || e.disabled) return false;
    if (e.matches("input, textarea")) e.focus(); else e.click();
    return true;
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
    if (event.target.matches("input:not([type=checkbox]):not([type=radio]), textarea, select")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const modal = dialogue && dialogue.open;
    const steps = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1, g: "first", G: "last" };
    if (!modal && event.key in steps && (event.key.length === 1 || rows().includes(document.activeElement))) go(steps[event.key]);
    else if (!modal && event.key === "?") help();
    else if (event.key === "n" || event.key === "N") { if (!hunk(event.key === "n" ? 1 : -1)) return; }
    else if (event.key === "d") { if (!markDirectory()) return; }
    else if (event.key === "Y") { if (!copy()) return; }
    else if (!/^[\/cluURrapxbyofh]$/.test(event.key) || !press(event.key)) return;
    event.preventDefault();
  });

  // After something was done the focus is where it came from.
  if (location.hash.startsWith("#r-")) {
    addEventListener("load", () => requestAnimationFrame(() => { // the browser's own going there comes first
      const at = document.getElementById(decodeURIComponent(location.hash.slice(1)));
      const first = at && (at.querySelector("a, button, summary") || at);
      if (first) first.focus();
    }));
  }
  if (document.querySelector(".banner strong")) say(document.querySelector(".banner strong").textContent);
})();
