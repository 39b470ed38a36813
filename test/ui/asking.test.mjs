// The page on which people answer for clients that cannot be asked, in a real browser.
import assert from "node:assert/strict";
import { mkdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { bridge, build, endAll } from "./harness.mjs";

const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const shots = process.env.SCREENSHOTS;
const form = {
  type: "object",
  properties: {
    from: { type: "string", title: "From", description: "City or airport", minLength: 2, maxLength: 60, default: "Lisbon" },
    day: { type: "string", format: "date", title: "Day of travel" },
    seats: { type: "integer", title: "Seats", minimum: 1, maximum: 9, default: 1 },
    class: { type: "string", title: "Class", oneOf: [{ const: "e", title: "Economy" }, { const: "b", title: "Business" }], default: "e" },
    extras: { type: "array", title: "Extras", items: { anyOf: [{ const: "bag", title: "Bag" }, { const: "meal", title: "Meal" }] }, default: ["bag"] },
    flex: { type: "boolean", title: "May be moved" },
  },
  required: ["from", "day", "seats"],
};
let server, at, browser, answered;

// serve is a modern-only server whose one tool asks once.
function serve(req, res) {
  let text = "";
  req.on("data", (chunk) => (text += chunk));
  req.on("end", () => {
    const { id, method, params } = JSON.parse(text);
    const complete = { resultType: "complete", ttlMs: 0, cacheScope: "private" };
    const results = {
      "server/discover": { ...complete, supportedVersions: ["2026-07-28"], capabilities: { tools: {} }, _meta: {} },
      "tools/list": { ...complete, tools: [{ name: "book", inputSchema: { type: "object" } }] },
      "tools/call": { resultType: "input_required", inputRequests: { q: { method: "elicitation/create", params: { mode: "form", message: "Where to, and when?", requestedSchema: form } } } },
    };
    if (params?.inputResponses) {
      answered = params.inputResponses.q;
      results["tools/call"] = { ...complete, content: [{ type: "text", text: "booked" }] };
    }
    res.setHeader("Content-Type", "application/json");
    res.end(JSON.stringify({ jsonrpc: "2.0", id, result: results[method] }));
  });
}

// client is a session of 2024-11-05 that declared nothing.
async function client() {
  const headers = { "Content-Type": "application/json", Accept: "application/json, text/event-stream" };
  const post = (body) => fetch(at.url, { method: "POST", headers, body: JSON.stringify({ jsonrpc: "2.0", ...body }) });
  const opened = await post({ id: 0, method: "initialize", params: { protocolVersion: "2024-11-05", capabilities: {}, clientInfo: { name: "old", version: "1" } } });
  await opened.text();
  headers["Mcp-Session-Id"] = opened.headers.get("Mcp-Session-Id");
  await post({ method: "notifications/initialized" });
  return async (args) => {
    const text = await (await post({ id: 1, method: "tools/call", params: { name: "book", arguments: args } })).text();
    return JSON.parse(text.startsWith("{") ? text : /data: (\{.*"result".*\})/.exec(text)[1]).result.content[0].text;
  };
}

const linkIn = (text) => /http:\/\/127\.0\.0\.1:\d+\/questions\/q\/\w+/.exec(text)[0];

before(async () => {
  server = createServer(serve).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  at = await bridge(build(), `http://127.0.0.1:${server.address().port}/mcp`, "127.0.0.1:0", "127.0.0.1:0", ["--questions", "page", "--questions.wait", "0s"]);
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--headless=new", "--no-sandbox"] });
});

after(async () => {
  await browser?.close();
  await endAll();
  server?.close();
});

test("a person answers without any script, and the same call again is done", async () => {
  const call = await client();
  const link = linkIn(await call({ a: 1 }));
  const page = await (await browser.newContext({ javaScriptEnabled: false })).newPage();
  await page.goto(link);
  await page.getByLabel("From").fill("Oslo");
  await page.getByLabel("Day of travel").fill("2026-12-24");
  await page.getByLabel("Seats").fill("99");
  await page.getByRole("button", { name: "Send" }).click();
  assert.match(await page.getByRole("alert").innerText(), /Seats.*from 1 to 9/s);
  assert.equal(await page.getByLabel("From").inputValue(), "Oslo");
  await page.getByLabel("Seats").fill("2");
  await page.getByLabel("Class").selectOption({ label: "Business" });
  await page.getByLabel("Meal").check();
  await page.getByLabel("May be moved").check();
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByRole("heading", { name: "Thank you" }).waitFor();
  assert.equal(answered, undefined, "the server was called though no call waited");
  assert.equal(await call({ a: 1 }), "booked");
  assert.deepEqual(answered, { action: "accept", content: { from: "Oslo", day: "2026-12-24", seats: 2, class: "b", extras: ["bag", "meal"], flex: true } });
  await page.goto(link);
  await page.getByRole("heading", { name: "This question was answered" }).waitFor();
});

test("decline needs no field, and the keyboard is enough", async () => {
  const call = await client();
  const page = await browser.newPage();
  await page.goto(linkIn(await call({ a: 2 })));
  await page.getByRole("button", { name: "Decline" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Declined" }).waitFor();
  await call({ a: 2 });
  assert.deepEqual(answered, { action: "decline" });
});

test("axe-core finds nothing, light and dark, on a desk and on a phone", async () => {
  const call = await client();
  const link = linkIn(await call({ a: 3 }));
  for (const [name, options] of Object.entries({
    light: { colorScheme: "light", viewport: { width: 800, height: 900 } },
    dark: { colorScheme: "dark", viewport: { width: 390, height: 844 } },
  })) {
    const page = await (await browser.newContext({ ...options, bypassCSP: true })).newPage();
    for (const address of [link, link.replace(/q\/\w+$/, ""), link + "x"]) {
      await page.goto(address);
      const found = await page.evaluate(async (source) => {
        (0, eval)(source);
        return (await globalThis.axe.run()).violations.map((v) => `${v.id}: ${v.nodes.map((n) => n.html).join(" ")}`);
      }, readFileSync(axe, "utf8"));
      assert.deepEqual(found, [], `${name} ${address}`);
    }
    if (shots) {
      mkdirSync(shots, { recursive: true });
      await page.goto(link);
      await page.screenshot({ path: join(shots, `asking-${name}.png`), fullPage: true });
    }
  }
});

test("two people, two links: neither opens the other's", async () => {
  const [ada, bob] = [await client(), await client()];
  const links = [linkIn(await ada({ a: 10 })), linkIn(await bob({ a: 10 }))];
  const pages = await Promise.all(links.map(async (link) => {
    const page = await (await browser.newContext()).newPage();
    await page.goto(link);
    await page.getByLabel("From").waitFor();
    return page;
  }));
  for (const [page, other] of [[pages[0], links[1]], [pages[1], links[0]]]) {
    const visit = await page.context().newPage();
    assert.equal((await visit.goto(other)).status(), 403);
    assert.equal(await visit.getByRole("button").count(), 0);
    const inbox = await page.context().newPage();
    await inbox.goto(await page.getByRole("link", { name: "All questions" }).getAttribute("href"));
    assert.equal(await inbox.locator("li").count(), 1, "the inbox shows others' questions");
  }
});

test("another port of this machine gets cookies that open nothing", async () => {
  const call = await client();
  const link = linkIn(await call({ a: 15 }));
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(link);
  const inbox = await page.getByRole("link", { name: "All questions" }).getAttribute("href");
  let cookie = "";
  const thief = createServer((req, res) => {
    cookie ||= req.headers.cookie ?? ""; // the browser asks for an icon, too, outside of the cookies' path
    res.end();
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => thief.once("listening", resolve));
  await page.goto(`http://127.0.0.1:${thief.address().port}/questions/`);
  thief.close();
  assert.match(cookie, /mcp-bridge-browser=\w+/, "the browser minds ports now: the test shows nothing");
  for (const path of ["", "mine/", "q/", "q/none"]) {
    const shown = await (await fetch(link.replace(/q\/\w+$/, path), { headers: { cookie } })).text();
    assert.doesNotMatch(shown, /questions\/(q|mine)\/\w/, path);
  }
  await page.goto(inbox);
  assert.equal(await page.locator("li").count(), 1);
  await context.close();
});

test("a link that is followed from another site does not spoil the form in another tab", async () => {
  const call = await client();
  const [first, second] = [linkIn(await call({ a: 20 })), linkIn(await call({ a: 21 }))];
  const site = createServer((req, res) => {
    res.setHeader("Content-Type", "text/html");
    res.end(`<a href="${second}">go</a>`);
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => site.once("listening", resolve));
  const context = await browser.newContext();
  const [tab, other] = [await context.newPage(), await context.newPage()];
  await tab.goto(first);
  await other.goto(`http://localhost:${site.address().port}/`);
  await other.getByRole("link", { name: "go" }).click();
  await other.getByLabel("From").waitFor();
  await tab.getByRole("button", { name: "Decline" }).click();
  await tab.getByRole("heading", { name: "Declined" }).waitFor();
  site.close();
});

test("another site can neither frame the page nor send its form", async () => {
  const call = await client();
  const link = linkIn(await call({ a: 4 }));
  const evil = createServer((req, res) => {
    res.setHeader("Content-Type", "text/html");
    res.end(`<iframe src="${link}"></iframe><form method="post" action="${link}"><input name="guard" value=""><button name="action" value="accept">win</button></form>`);
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => evil.once("listening", resolve));
  const page = await (await browser.newContext()).newPage();
  await page.goto(link); // the person has the page's cookies
  await page.goto(`http://localhost:${evil.address().port}/`);
  assert.equal(page.frames()[1] ? await page.frames()[1].getByRole("button").count() : 0, 0, "the page is framed");
  await page.getByRole("button", { name: "win" }).click();
  await page.getByRole("heading", { name: /came from another site/ }).waitFor();
  evil.close();
});
