// Keeps a page up to date: asks for its live part again and again, and puts in
// what changed. What a person has focused or opened stays as it is.
import { ask } from "/door/pass.mjs";

const live = document.getElementById("live");
const told = document.getElementById("connection");
const pause = document.getElementById("pause");
const stopped = document.getElementById("paused");
const every = 1000;
let paused = false;

function say(text) {
  told.hidden = text === "";
  if (told.textContent !== text) told.textContent = text;
}

// The key of an element that stays itself when others come before it.
const keyOf = (node) => (node?.nodeType === Node.ELEMENT_NODE ? node.dataset.key : undefined);

// Brings the children of one element into the form of another's. What a person has
// opened stays open.
function morph(from, to) {
  const keyed = new Map();
  for (const child of from.children) if (keyOf(child)) keyed.set(keyOf(child), child);
  for (let i = 0; i < to.childNodes.length; i++) {
    const want = to.childNodes[i];
    let have = from.childNodes[i];
    const key = keyOf(want);
    if (key !== keyOf(have)) {
      const found = key && keyed.get(key);
      const place = have ?? null;
      have = found ?? want.cloneNode(true);
      if (!found && place && !keyOf(place) && !key) place.replaceWith(have);
      else from.insertBefore(have, place);
      if (!found) continue;
    }
    if (!have) from.append(want.cloneNode(true));
    else if (have.nodeType !== want.nodeType || have.nodeName !== want.nodeName) have.replaceWith(want.cloneNode(true));
    else if (have.nodeType === Node.TEXT_NODE) {
      if (have.data !== want.data) have.data = want.data;
    } else {
      for (const { name } of [...have.attributes]) if (!want.hasAttribute(name) && name !== "open") have.removeAttribute(name);
      for (const { name, value } of want.attributes) if (have.getAttribute(name) !== value) have.setAttribute(name, value);
      morph(have, want);
    }
  }
  while (from.childNodes.length > to.childNodes.length) from.lastChild.remove();
}

async function refresh() {
  if (paused || document.hidden || live.dataset.still !== undefined) return;
  try {
    const answer = await ask(location.href, { headers: { "X-Part": "live" } });
    if (answer.status === 401) {
      location.reload();
      return;
    }
    const fresh = document.createElement("template"); // which keeps the space at its beginning, as the page has it
    fresh.innerHTML = await answer.text();
    if (String(getSelection()) === "") morph(live, fresh.content);
    say("");
  } catch {
    say("The bridge does not answer. This page goes on by itself when it does.");
  }
}

async function run() {
  await refresh();
  setTimeout(run, every);
}

pause.addEventListener("click", () => {
  paused = !paused;
  pause.setAttribute("aria-pressed", String(paused));
  pause.textContent = paused ? "Go on" : "Pause";
  stopped.hidden = !paused;
  stopped.textContent = paused ? `Paused: this page shows what was at ${new Date().toISOString().slice(11, 19)} UTC. The bridge goes on.` : "";
  if (!paused) refresh();
});
document.addEventListener("keydown", (event) => {
  if (event.target.matches("input, select") || event.ctrlKey || event.metaKey || event.altKey) return;
  const link = document.querySelectorAll("nav a")[Number(event.key) - 1];
  if (link) link.click();
});
document.querySelector(".done")?.focus(); // what was done is read first
setTimeout(run, every);
