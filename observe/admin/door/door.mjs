// Exchanges the token of the address for the pass, and puts the page that the address
// names in the place of this one: pages come to who sends the pass only, which browsers
// do not do by themselves. The fragment is taken out of the address at once, so that it
// gets into no bookmark and no history.
import { ask, askTabs, forget, keep, pass } from "./pass.mjs";

const door = document.querySelector("main");
const says = document.getElementById("says");

// say shows the door, with a word why.
function say(text, wrong = false) {
  if (text) says.textContent = text;
  says.className = wrong ? "wrong" : "";
  door.hidden = false;
}

async function enter(token) {
  const answer = await fetch("/door/enter", { method: "POST", body: token });
  if (!answer.ok) {
    say("This is not the token of this bridge. It prints a new one at each start.", true);
    return;
  }
  keep(await answer.text());
  await open();
}

// open shows the page of this address.
async function open() {
  let answer;
  try {
    answer = await ask(location.href);
    if (answer.status !== 401) {
      await show(answer);
      return;
    }
  } catch {
    say("The bridge does not answer. Load this page again.", true);
    return;
  }
  forget();
  say();
}

// show puts an answer in the place of what is shown.
async function show(answer) {
  const text = await answer.text();
  if (!answer.headers.get("Content-Type")?.startsWith("text/html")) {
    const plain = document.createElement("pre");
    plain.textContent = text;
    document.body.className = "";
    document.body.replaceChildren(plain);
    return;
  }
  const page = new DOMParser().parseFromString(text, "text/html");
  document.title = page.title;
  document.body.replaceWith(document.adoptNode(page.body));
  if (location.hash) location.replace(location.hash); // what it names is there now
  await import("/static/view.mjs");
}

// What a form changes is sent with the pass, and the page opened that the answer leads to.
async function send(form, button) {
  const answer = await ask(form.getAttribute("action"), { method: "POST", body: new URLSearchParams(new FormData(form, button)) });
  if (answer.status === 401) location.reload();
  else if (answer.redirected) location.assign(answer.url);
  else {
    document.getElementById("live").dataset.still = ""; // the module refreshes the page no more
    await show(answer);
  }
}

// save fetches a file with the pass.
async function save(link) {
  const answer = await ask(link.href);
  if (answer.status === 401) {
    location.reload();
    return;
  }
  const file = document.createElement("a");
  file.href = URL.createObjectURL(await answer.blob());
  file.download = /filename="([^"]+)"/.exec(answer.headers.get("Content-Disposition"))?.[1] ?? "";
  file.click();
  setTimeout(() => URL.revokeObjectURL(file.href), 60_000);
}

// fail says that something could not be done, where the page says such things.
function fail() {
  const told = document.getElementById("connection");
  told.hidden = false;
  told.textContent = "The bridge does not answer. Nothing was done.";
}

document.addEventListener("submit", (event) => {
  if (event.target.method !== "post") return;
  event.preventDefault();
  send(event.target, event.submitter).catch(fail);
});
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[download]");
  if (!link || link.href.startsWith("blob:")) return;
  event.preventDefault();
  save(link).catch(fail);
});
document.getElementById("form").addEventListener("submit", (event) => {
  event.preventDefault();
  enter(document.getElementById("token").value);
});

function begin() {
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (token) {
    history.replaceState(null, "", location.pathname + location.search);
    enter(token);
  } else if (pass()) open();
  else {
    say();
    askTabs((theirs) => {
      keep(theirs);
      open();
    });
  }
}
begin();
