// Signing in for a legacy client over stdio, with a real authorization server. The client knows nothing of it.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { bridgeBinary } from './harness/bridge.mjs';
import { ended, firstLine, start, stop, until } from './harness/process.mjs';
import { browse } from './peers/browser.mjs';

const LIMIT = { timeout: 60_000 };
const peer = (name) => fileURLToPath(new URL(`./peers/${name}.mjs`, import.meta.url));

describe('signing in for a client over stdio', () => {
  let issuer, url, dir;
  const clients = [];
  before(async () => {
    issuer = start(process.execPath, [peer('issuer')], { env: { ...process.env, TOKEN_LIFE: '8' } });
    ({ url } = await firstLine(issuer));
    dir = mkdtempSync(join(tmpdir(), 'bridge-signin-'));
  }, LIMIT);
  after(async () => {
    for (const client of clients) await client.close().catch(() => {});
    await stop(issuer);
    rmSync(dir, { recursive: true, force: true });
  });

  const counts = () => fetch(new URL('/counts', url)).then((response) => response.json());
  const flags = (store, upstream) => [
    'stdio', '--upstream', upstream, '--auth.mode', 'agent', '--auth.store', 'file', '--auth.dir', join(dir, store),
    '--auth.browser', `${process.execPath} ${peer('browser')}`,
  ];
  async function connect(store = 'auth', env = {}, upstream = url) {
    const { Client } = await import('sdk-2025-06/client/index.js');
    const { StdioClientTransport } = await import('sdk-2025-06/client/stdio.js');
    const client = new Client({ name: 'desktop', version: '1.0.0' }, { capabilities: {} });
    const transport = new StdioClientTransport({ command: await bridgeBinary(), args: flags(store, upstream), env: { ...process.env, ...env }, stderr: 'ignore' });
    await client.connect(transport);
    clients.push(client);
    return Object.assign(client, { url: upstream });
  }
  const echo = (client) => client.callTool({ name: 'echo', arguments: { text: 'hello' } });

  test('one tab, and no more: across calls, expiry, restarts and two clients at once', LIMIT, async () => {
    const [a, b] = await Promise.all([connect(), connect()]);
    for (const client of [a, b]) assert.equal((await echo(client)).content[0].text, 'hello');
    assert.deepEqual({ ...(await counts()), refused: 0, token: 0 }, { authorize: 1, register: 1, token: 0, refused: 0 });
    const before = (await counts()).token;
    await until(async () => (await echo(a)) && (await counts()).token > before, 'a renewal', 20_000);
    assert.equal((await echo(b)).content[0].text, 'hello');
    await a.close();
    const again = await connect();
    assert.equal((await echo(again)).content[0].text, 'hello');
    const { authorize, register } = await counts();
    assert.deepEqual({ authorize, register }, { authorize: 1, register: 1 });
  });

  test('the tab that a dead process opened works', LIMIT, async () => {
    const env = { BROWSER_FILE: join(dir, 'tab') };
    const first = await connect('second', env);
    const lost = first.listTools().catch(() => {});
    await until(() => existsSync(env.BROWSER_FILE), 'the tab');
    const pid = first.transport.pid;
    process.kill(pid, 'SIGKILL');
    await ended(pid, 'the first bridge');
    await lost;
    const second = await connect('second', env);
    const listed = second.listTools();
    const [page, ...others] = readFileSync(env.BROWSER_FILE, 'utf8').trim().split('\n');
    assert.deepEqual(others, []);
    const shown = await until(() => browse(page).catch(() => ''), 'the page at the end');
    assert.match(shown, /You are signed in/);
    assert.ok((await listed).tools.length > 0);
    assert.equal(readFileSync(env.BROWSER_FILE, 'utf8').trim().split('\n').length, 1);
  });

  test('a server that speaks only older revisions takes over after the sign-in', LIMIT, async () => {
    const old = start(process.execPath, [peer('legacy'), 'http']);
    const guard = start(process.execPath, [peer('issuer'), (await firstLine(old)).url]);
    try {
      const client = await connect('third', {}, (await firstLine(guard)).url);
      assert.equal(client.getServerVersion().name, 'mcp-bridge');
      const steps = [];
      const called = await client.callTool({ name: 'steps', arguments: { count: 2 } }, undefined, { onprogress: ({ progress }) => steps.push(progress) });
      assert.equal(called.content[0].text, 'done');
      assert.deepEqual(steps.filter(Number.isInteger), [1, 2]);
      assert.ok((await client.listTools()).tools.some(({ name }) => name === 'gate'));
      assert.equal((await echo(client)).content[0].text, 'hello');
      await client.close();
      const again = await connect('third', {}, client.url);
      assert.equal(again.getServerVersion().name, 'old');
      const { authorize } = await fetch(new URL('/counts', client.url)).then((response) => response.json());
      assert.equal(authorize, 1);
    } finally {
      await stop(guard);
      await stop(old);
    }
  });

  test('nothing that is kept can be read by others', LIMIT, () => {
    const files = readdirSync(join(dir, 'auth'));
    assert.ok(files.some((name) => name.endsWith('.login')));
    for (const name of files) assert.equal(statSync(join(dir, 'auth', name)).mode & 0o777, 0o600, name);
  });
});
