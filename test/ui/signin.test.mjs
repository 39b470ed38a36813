// Signing in in a real browser, at a real authorization server (oidc-provider), for a client over stdio that knows nothing of it.
// Needs `npm ci` in test/e2e, too.
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";
import { build, endAll, launch } from "./harness.mjs";

const e2e = join(import.meta.dirname, "../e2e");
const axe = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const sdk = createRequire(join(e2e, "package.json"));
const { Client } = sdk("sdk-2025-06/client/index.js");
const { StdioClientTransport } = sdk("sdk-2025-06/client/stdio.js");
const shots = process.env.SCREENSHOTS;
const limit = { timeout: 120_000 };
let bridge, server, dir, browser;
const clients = [];

before(async () => {
  dir = mkdtempSync(join(tmpdir(), "bridge-signin-"));
  bridge = join(build(), "bridge");
  process.env.PAGES = "on";
  const { found } = await launch(process.execPath, [join(e2e, "peers/issuer.mjs")], /"url":"([^"]+)"/);
  server = found[1];
  browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
}, limit);

after(async () => {
  for (const client of clients) await client.close().catch(() => {});
  await browser?.close();
  await endAll();
  rmSync(dir, { recursive: true, force: true });
});

// desktop starts a client that launches the bridge. The tab that is opened is a line in a file.
async function desktop(store) {
  const client = new Client({ name: "desktop", version: "1" }, { capabilities: {} });
  const tab = join(dir, `${store}.tab`);
  const transport = new StdioClientTransport({
    command: bridge,
    args: ["stdio", "--upstream", server, "--auth.mode", "agent", "--auth.store", "file", "--auth.dir", join(dir, store),
      "--auth.browser", `${process.execPath} ${join(e2e, "peers/browser.mjs")}`],
    env: { ...process.env, BROWSER_FILE: tab },
    stderr: "ignore",
  });
  await client.connect(transport);
  clients.push(client);
  return { client, tab };
}

const echo = async (client) => (await client.callTool({ name: "echo", arguments: { text: "hello" } })).content[0].text;
const lines = (file) => readFileSync(file, "utf8").trim().split("\n");

// show opens the tab that the bridge asked for, once it did.
async function show(tab) {
  for (const end = Date.now() + 30_000; !existsSync(tab); ) {
    assert.ok(Date.now() < end, "no tab was asked for");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const page = await browser.newPage();
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  await page.goto(lines(tab)[0]);
  return { page, asked };
}

// answer clicks on the server's pages until the browser has come back to this machine's bridge.
async function answer(page, button) {
  while (await page.getByRole("button", { name: button }).isVisible()) {
    await Promise.all([page.waitForNavigation(), page.getByRole("button", { name: button }).click()]);
  }
}

// faults are what axe finds on a page, in both colour schemes.
async function faults(page, name) {
  const found = [];
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    if (shots) mkdirSync(shots, { recursive: true });
    if (shots) await page.screenshot({ path: join(shots, `${name}-${colorScheme}.png`) });
    const text = readFileSync(axe, "utf8");
    const { violations } = await page.evaluate(`${text}; axe.run()`);
    found.push(...violations.map(({ id, nodes }) => `${colorScheme}: ${id}: ${nodes[0].html}`));
  }
  return found;
}

test("a person signs in once in the browser; restarts and a second client ask for nothing", limit, async () => {
  const { client, tab } = await desktop("agreed");
  const waiting = echo(client);
  const { page, asked } = await show(tab);
  await answer(page, "Agree");
  assert.equal(await page.locator("h1").innerText(), `You are signed in to ${new URL(server).host}`);
  assert.match(await page.locator("body").innerText(), /Go back to your application: it carries on by itself/);
  assert.equal(await waiting, "hello");
  assert.deepEqual(await faults(page, "signed-in"), []);
  const back = asked.findIndex((url) => url.includes("/callback?"));
  const { port } = new URL(asked[back]);
  for (const url of asked.slice(back + 1)) assert.equal(new URL(url).port, port, `the page at the end has the browser ask ${url}`);
  await assert.rejects(page.reload(), /ERR_CONNECTION_REFUSED/); // nobody listens any longer than needed
  await page.close();

  const [second, third] = await Promise.all([desktop("agreed"), desktop("agreed")]);
  assert.deepEqual(await Promise.all([echo(second.client), echo(third.client), echo(client)]), ["hello", "hello", "hello"]);
  assert.equal(lines(tab).length, 1);
  const counts = await (await fetch(new URL("/counts", server))).json();
  assert.deepEqual([counts.authorize, counts.register], [1, 1]);
});

test("a person who declines is told so on both sides, and can change their mind", limit, async () => {
  const { client, tab } = await desktop("declined");
  const waiting = client.callTool({ name: "echo", arguments: { text: "hello" } });
  const { page } = await show(tab);
  await answer(page, "Decline");
  assert.equal(await page.locator("h1").innerText(), `You are not signed in to ${new URL(server).host}`);
  assert.match(await page.locator("body").innerText(), /was declined; try again if that was not meant/);
  assert.deepEqual(await faults(page, "declined"), []);
  const told = await waiting;
  assert.ok(told.isError);
  assert.match(told.content[0].text, /was declined; try again if that was not meant/);
  await page.close();
});
