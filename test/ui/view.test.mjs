import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { bridge, build, end, endAll, launch, token } from "./harness.mjs";

const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const shots = process.env.SCREENSHOTS; // a directory to keep pictures in
const secrets = /a-secret-of-the-(client|server|person)/;
let dir, server, at, browser;

before(async () => {
  dir = build();
  server = (await launch(join(dir, "stage"), [], /http:\S+/)).found[0];
  at = await bridge(dir, server, "127.0.0.1:0", "127.0.0.1:0", ["--admin.actions", "on", "--limits.state-only-rounds", "1000", "--limits.rounds", "1000"]); // the circle outlasts the tests
  await launch(join(dir, "stage"), ["-bridge", at.url], /ready/);
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--headless=new", "--no-sandbox"] });
});

after(async () => {
  await browser?.close();
  await endAll();
});

// enter opens a page as a person does: with the address that has the token.
async function enter(path = "", options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, ...options });
  const page = await context.newPage();
  const faults = [];
  page.on("pageerror", (fault) => faults.push(String(fault)));
  page.on("console", (line) => line.type() === "error" && !line.text().includes("401") && faults.push(line.text()));
  await page.goto(`${at.admin}#token=${token}`);
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  assert.ok(!page.url().includes(token), "the token stays in the address");
  if (path) await page.goto(at.admin + path);
  return { context, page, faults };
}

async function picture(page, name) {
  if (!shots) return;
  mkdirSync(shots, { recursive: true });
  await page.screenshot({ path: join(shots, `${name}.png`), fullPage: true });
}

async function accessible(page, what) {
  await page.addScriptTag({ path: axe }).catch(() => {}); // the page's policy forbids it: run in the isolated world below
  const found = await page.evaluate(async (source) => {
    if (!globalThis.axe) (0, eval)(source);
    return (await globalThis.axe.run()).violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).slice(0, 3).join(" ")}`);
  }, readFileSync(axe, "utf8"));
  assert.deepEqual(found, [], what);
}

const reasons = {
  "person-thinks": /Waits for a person.*answered questions before/s,
  "never-answers": /has never answered such a question/,
  "server-silent": /The server has been silent for/,
  "goes-in-circles": /Going in circles: the server asked nothing/,
  "lost-its-stream": /The client lost the stream of this call/,
};

test("it says why each of the six calls hangs", async () => {
  const { context, page, faults } = await enter("waiting");
  for (const [client, reason] of Object.entries(reasons)) {
    const flow = page.locator("article.flow", { hasText: client });
    await flow.filter({ hasText: reason }).waitFor({ timeout: 60_000 });
    await flow.getByText(/What to do: /).waitFor();
    await flow.getByText(/left \((timeouts|limits)\.[a-z-]+\)/).waitFor(); // the limit has a name and a number
  }
  await page.goto(at.admin);
  await page.getByText(/Clients are not offered draw_chart: .*x-mcp-header.*The fault is the server's/s).waitFor();
  await page.goto(at.admin + "server");
  await page.getByRole("row", { name: /draw_chart.*x-mcp-header/ }).waitFor();
  assert.deepEqual(faults, []);
  await context.close();
});

test("pages are accessible and say nothing secret, in both themes and on a phone", async () => {
  const looks = { light: { colorScheme: "light" }, dark: { colorScheme: "dark" }, phone: { viewport: { width: 390, height: 800 } } };
  for (const [look, options] of Object.entries(looks)) {
    const { context, page } = await enter("", { bypassCSP: true, ...options });
    await page.goto(at.admin + "sessions?client=person");
    const session = await page.getByRole("row", { name: /person-thinks/ }).getByRole("link").getAttribute("href");
    for (const path of ["", "waiting", "ended", "sessions", "server", "recording", session.slice(1)]) {
      await page.goto(at.admin + path);
      await page.locator("#live").waitFor();
      await picture(page, `${(path.split("?")[0] || "overview")}-${look}`);
      await accessible(page, `${look} ${path}`);
      assert.doesNotMatch(await page.content(), secrets);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(wide <= 0, `${look} ${path} is ${wide} pixels too wide`);
    }
    await context.close();
  }
});

test("a question appears, ages, and its answer moves the flow, in the lanes of the session", async () => {
  const { context, page, faults } = await enter("sessions?client=actor");
  const actor = await act("actor");
  const link = page.getByRole("row", { name: /actor/ }).getByRole("link");
  await link.click();
  await page.getByRole("heading", { name: "Messages" }).waitFor();
  const asked = await actor.call();
  const flow = page.locator("article.flow", { hasText: "book_flight" });
  await flow.waitFor();
  const age = () => flow.locator(".age").textContent();
  const first = await age();
  await page.waitForFunction((was) => document.querySelector("article.flow .age").textContent !== was, first);
  await picture(page, "question-light");
  await actor.answer(asked);
  await flow.waitFor({ state: "detached" });
  const lanes = page.locator("article.band", { hasText: "tools/call" });
  for (const text of ["round 1: tools/call", "input_required", "question: elicitation/create", "answer (result)", "round 2: tools/call", "complete"]) {
    await lanes.getByText(text, { exact: false }).first().waitFor();
  }
  // What the bridge changed in a message, by which rule; open it stays open while the page goes on.
  for (const [message, change] of [["round 1: tools/call", /added.*protocolVersion.*A-21/s], ["question: elicitation/create", /params\.mode.*C\.5/s],
    ["round 2: tools/call", /requestState.*D-I3/s], ["complete", /resultType.*B-28/s]]) {
    const arrow = lanes.locator("details.arrow", { hasText: message }).filter({ hasText: /change/ }).last();
    await arrow.locator("summary").click();
    await arrow.locator("li", { hasText: change }).first().waitFor();
    assert.equal(await arrow.locator("pre").count(), 0, "what a message says is on the page");
  }
  const refreshed = page.waitForResponse((answer) => answer.url().includes("/session?"));
  await refreshed;
  await refreshed.then(() => page.waitForResponse((answer) => answer.url().includes("/session?")));
  assert.equal(await lanes.locator("details.arrow[open]").count(), 4, "what a person opened was closed");
  const timeline = lanes.getByRole("img", { name: /who was waited for: .*person [\d.]+ s/ });
  await timeline.waitFor();
  await lanes.locator(".spent li", { hasText: "person" }).waitFor(); // the colours are words, too
  await picture(page, "lanes-light");
  await page.emulateMedia({ colorScheme: "dark" });
  await picture(page, "lanes-dark");
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("link", { name: "Download" }).click()]);
  assert.match(download.suggestedFilename(), /^session-\d+\.jsonl$/);
  const text = readFileSync(await download.path(), "utf8");
  assert.match(text, /"method":"tools\/call"/);
  assert.doesNotMatch(text + (await page.content()), secrets);
  assert.deepEqual(faults, []);
  await context.close();
});

// act is a client that the test moves.
async function act(name) {
  const send = (body, session) =>
    fetch(at.url, {
      method: "POST",
      headers: { "Content-Type": "application/json", Accept: "application/json, text/event-stream", ...(session && { "Mcp-Session-Id": session }) },
      body: JSON.stringify({ jsonrpc: "2.0", ...body }),
    });
  const begun = await send({
    id: 0, method: "initialize", params: { protocolVersion: "2025-06-18", capabilities: { elicitation: {} }, clientInfo: { name, version: "1" } },
  });
  const session = begun.headers.get("mcp-session-id");
  await begun.text();
  return {
    async call() {
      const answer = await send({ id: 1, method: "tools/call", params: { name: "book_flight", arguments: { card: "a-secret-of-the-client" } } }, session);
      const reader = answer.body.getReader();
      for (let text = ""; ; ) {
        const { value } = await reader.read();
        text += new TextDecoder().decode(value);
        const found = /"id":"(b-[^"]+)"/.exec(text);
        if (found) return found[1];
      }
    },
    fail: () => send({ id: 2, method: "tools/call", params: { name: "no_such_tool", arguments: { card: "a-secret-of-the-client" } } }, session),
    answer: (id) => send({ id, result: { action: "accept", content: { city: "a-secret-of-the-person" } } }, session),
  };
}

test("the rest of a call is seen that began while nobody looked", async () => {
  const actor = await act("late");
  const asked = await actor.call();
  const { context, page, faults } = await enter("sessions?client=late");
  await page.getByRole("row", { name: /late/ }).getByRole("link").click();
  const band = page.locator("article.band", { hasText: "book_flight" });
  await band.waitFor();
  await actor.answer(asked);
  for (const text of ["answer (result)", "round 2: tools/call", "complete"]) await band.getByText(text, { exact: false }).first().waitFor();
  assert.deepEqual(faults, []);
  await context.close();
});

test("the lanes blame who wanted a pause, and name their columns", async () => {
  const { context, page, faults } = await enter("sessions?client=goes-in-circles");
  await page.getByRole("row", { name: /goes-in-circles/ }).getByRole("link").click();
  const band = page.locator("article.band", { hasText: "busy_queue" });
  await band.getByText("bridge ⇄ server", { exact: true }).waitFor();
  await band.locator(".gap", { hasText: /of a pause that the server wanted/ }).first().waitFor({ timeout: 30_000 });
  assert.equal(await band.locator(".spent li", { hasText: /^bridge/ }).count(), 0, "the bridge is blamed");
  await picture(page, "circle-light");
  assert.deepEqual(faults, []);
  await context.close();
});

test("a call that failed is kept with its cause", async () => {
  const actor = await act("fails");
  await (await actor.fail()).text();
  const { context, page, faults } = await enter("ended");
  const failed = page.locator("article.flow", { hasText: "no_such_tool" });
  await failed.filter({ hasText: "The server answered with an error" }).waitFor();
  await failed.filter({ hasText: /cause server_error.*code -32602/s }).waitFor();
  assert.doesNotMatch(await page.content(), secrets);
  await failed.getByRole("link", { name: "no_such_tool" }).click();
  await page.getByRole("heading", { name: "Calls that did not complete, or waited in vain" }).waitFor();
  await picture(page, "failed-light");
  assert.deepEqual(faults, []);
  await context.close();
});

test("a recording is made, looked at and fetched without secrets", async () => {
  const { context, page, faults } = await enter("recording");
  await page.getByText("Nothing is recorded.").waitFor();
  await page.getByRole("button", { name: "Record" }).click();
  await page.getByText("Recording since").waitFor();
  const actor = await act("recorded");
  const asked = await actor.call();
  await (await actor.answer(asked)).text();
  await page.waitForFunction(() => !/messages\s*[0-5],/.test(document.querySelector("#live dl")?.textContent ?? "messages 0,"));
  await picture(page, "recording-light");
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("The last recording ended").waitFor();
  const waiting = page.waitForEvent("download");
  await page.getByRole("link", { name: "Download" }).click();
  const lines = readFileSync(await (await waiting).path(), "utf8").trim().split("\n").map((line) => JSON.parse(line));
  assert.equal(lines[0].format, "mcp-bridge-recording");
  assert.equal(lines[0].payloads, false);
  const call = lines.find((l) => l.hop === "up" && l.method === "tools/call" && l.round === 2);
  assert.equal(call.message.params.arguments.card, "string(22)");
  assert.match(call.message.params.requestState, /^state\(\d+\)-/);
  assert.doesNotMatch(JSON.stringify(lines), secrets);
  assert.deepEqual(faults, []);
  await context.close();
});

test("a recording of one client has nobody else", async () => {
  const { context, page, faults } = await enter("recording");
  await page.getByLabel("client").fill("wanted");
  await page.getByLabel("only calls with questions").check();
  await page.waitForResponse((answer) => answer.url().endsWith("/recording")); // what was filled in outlives a refresh
  await page.getByRole("button", { name: "Record" }).click();
  await page.getByText("client wanted, calls with questions").waitFor();
  for (const name of ["wanted", "unwanted"]) {
    const actor = await act(name);
    await (await actor.fail()).text();
    await (await actor.answer(await actor.call())).text();
  }
  await page.waitForFunction(() => /messages\s*\d\d,/.test(document.querySelector("#live dl")?.textContent ?? ""));
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("The last recording ended").waitFor();
  const lines = (await (await fetch(new URL("recording.jsonl", at.admin), { headers: { Authorization: `Bearer ${token}` } })).text()).trim().split("\n").map((line) => JSON.parse(line));
  assert.equal(lines[0].filter, "client wanted, calls with questions");
  assert.equal(new Set(lines.map((l) => l.session).filter(Boolean)).size, 1); // what the server says of itself is nobody's
  assert.doesNotMatch(JSON.stringify(lines), /no_such_tool/);
  assert.deepEqual(faults, []);
  await context.close();
});

test("a call and a session can be ended", async () => {
  const { context, page, faults } = await enter("sessions?client=to-end");
  const actor = await act("to-end");
  await page.getByRole("row", { name: /to-end/ }).getByRole("link").click();
  await actor.call();
  await page.getByRole("button", { name: "End this call…" }).click();
  await page.getByRole("heading", { name: "End this call?" }).waitFor();
  await picture(page, "confirm-light");
  await page.getByRole("link", { name: "No, go back" }).click();
  await page.getByRole("button", { name: "End this call…" }).click();
  await page.getByRole("button", { name: "End this call", exact: true }).click();
  await page.getByText("The call was ended.").waitFor();
  await page.locator("article.flow", { hasText: "Who runs the bridge ended it" }).waitFor();
  await page.goto(at.admin + "sessions?client=to-end");
  await page.getByRole("row", { name: /to-end.*Nothing is under way/ }).getByRole("link").click();
  await page.getByRole("button", { name: "End this session…" }).click();
  await page.getByRole("button", { name: "End this session", exact: true }).click();
  await page.getByText("The session was ended.").waitFor();
  await page.goto(at.admin + "sessions?client=to-end");
  await page.getByText(/^0 of \d+/).waitFor();
  assert.deepEqual(faults, []);
  await context.close();
});

test("filters find sessions", async () => {
  const { context, page } = await enter("sessions");
  await page.getByLabel("client or id").fill("never");
  await page.getByRole("button", { name: "Filter" }).click();
  await page.getByText(/^1 of \d+/).waitFor();
  await page.getByRole("row", { name: /never-answers/ }).waitFor();
  await page.getByLabel("revision").selectOption("2025-11-25");
  await page.getByRole("button", { name: "Filter" }).click();
  await page.getByText(/^0 of \d+/).waitFor();
  await context.close();
});

test("the keyboard reaches everything", async () => {
  const { context, page } = await enter();
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "To the content");
  await page.keyboard.press("3");
  await page.getByRole("heading", { name: "Sessions" }).waitFor();
  await page.getByRole("button", { name: "Pause" }).press("Enter");
  await page.getByRole("button", { name: "Go on", pressed: true }).waitFor();
  await page.getByText(/^Paused: this page shows what was at /).waitFor();
  await context.close();
});

test("wrong tokens, hosts and origins are refused", async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(`${at.admin}#token=wrong`);
  await page.getByText("This is not the token of this bridge").waitFor();
  await accessible(await bypassed(`${at.admin}`), "the door");
  for (const headers of [{ Origin: "http://evil.example" }, { "Sec-Fetch-Site": "cross-site" }]) {
    const refused = await fetch(at.admin, { headers: { Authorization: `Bearer ${token}`, ...headers } });
    assert.equal(refused.status, 403);
  }
  const rebound = await browser.newContext();
  const other = await rebound.newPage();
  const answer = await other.goto(at.admin.replace("127.0.0.1", "rebound.localhost")).catch(() => null);
  if (answer) assert.equal(answer.status(), 403);
  await rebound.close();
  await context.close();
});

test("another port of this machine gets nothing that opens the view, and other tabs need no token", async () => {
  const { context, page, faults } = await enter("waiting");
  assert.deepEqual(await context.cookies(), []);
  const got = [];
  const thief = createServer((req, res) => {
    got.push(req.headers);
    res.setHeader("Content-Type", "text/html");
    res.end("<p>here</p>");
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => thief.once("listening", resolve));
  const tab = await context.newPage();
  await tab.goto(`http://127.0.0.1:${thief.address().port}/api/v1/state`);
  thief.close();
  for (const headers of got) assert.ok(!headers.cookie && !headers.authorization, JSON.stringify(headers));
  assert.equal(await tab.evaluate(() => sessionStorage.length + localStorage.length), 0);
  await tab.goto(at.admin + "server"); // the other tab is asked
  await tab.getByRole("heading", { name: "Servers" }).waitFor();
  await tab.goto(at.admin + "api/v1/state");
  await tab.getByText(/^\{/).waitFor();
  await page.close();
  await tab.reload();
  await tab.getByText(/^\{/).waitFor();
  await tab.goto(`${at.admin}server#live`);
  await tab.getByRole("link", { name: "Overview" }).click();
  await tab.getByRole("heading", { name: "Overview" }).waitFor();
  await tab.goBack();
  await tab.getByRole("heading", { name: "Servers" }).waitFor();
  await tab.evaluate(() => sessionStorage.setItem("mcp-bridge-admin-pass", "ended"));
  await tab.getByLabel("Token").fill(token); // as after its end: the page asks for the token
  await tab.getByRole("button", { name: "Enter" }).click();
  await tab.getByRole("heading", { name: "Servers" }).waitFor();
  assert.deepEqual(faults, []);
  await context.close();
});

async function bypassed(url) {
  const context = await browser.newContext({ bypassCSP: true });
  const page = await context.newPage();
  await page.goto(url);
  await page.getByRole("heading", { name: "MCP Bridge" }).waitFor();
  return page;
}

test("ten thousand sessions stay usable", async () => {
  await launch(join(dir, "stage"), ["-bridge", at.url, "-idle", "10000"], /ready/);
  const { context, page } = await enter("sessions");
  const began = Date.now();
  await page.goto(at.admin + "sessions?client=idle-09999");
  await page.getByText(/^1 of 100\d\d/).waitFor();
  assert.ok(Date.now() - began < 3000, `the page took ${Date.now() - began} ms`);
  await page.goto(at.admin + "sessions");
  await page.getByRole("link", { name: "further rows" }).click();
  await page.getByText(/rows 201 to 400$/).waitFor();
  await page.evaluate(() => scrollTo(0, document.body.scrollHeight));
  await context.close();
});

test("a page goes on by itself after a restart", async () => {
  const { context, page } = await enter();
  const [clients, admin] = [new URL(at.url).host, new URL(at.admin).host];
  await end(at.child);
  await page.getByText("The bridge does not answer").waitFor();
  at = await bridge(dir, server, clients, admin);
  await page.getByText("The bridge does not answer").waitFor({ state: "hidden" });
  await page.getByText("All is well: 0 sessions").waitFor();
  await context.close();
});
