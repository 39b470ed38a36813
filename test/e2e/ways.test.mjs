// What single ways in and out owe beyond the matrix: how `bridge stdio` ends, large and broken messages, a client that falls back
// to HTTP+SSE by itself, children that die.
import assert from 'node:assert/strict';
import { createInterface } from 'node:readline';
import { after, afterEach, before, describe, it } from 'node:test';
import { WebSocket } from 'ws';
import { bridgeBinary } from './harness/bridge.mjs';
import { agreeable, connect } from './harness/client.mjs';
import { ended, start, stop, until } from './harness/process.mjs';
import { toolCall } from './harness/raw.mjs';
import { newest, releases } from './harness/releases.mjs';
import { downstreams, serve, upstreams } from './harness/transports.mjs';
import { LIMIT, world } from './harness/world.mjs';

const MIB = 1 << 20;

describe('bridge stdio -- COMMAND', () => {
  let upstream, pipe;
  before(async () => (upstream = await upstreams.stdio()), LIMIT);
  after(() => upstream.stop(), LIMIT);
  afterEach(() => pipe && stop(pipe.handle), LIMIT);

  /** Launches the bridge as a desktop client does and initializes. */
  const launch = async () => {
    const handle = start(await bridgeBinary(), ['stdio', ...upstream.target], { env: { ...process.env, ...upstream.env } });
    const lines = [];
    createInterface({ input: handle.child.stdout }).on('line', (line) => lines.push(JSON.parse(line))); // nothing but protocol
    const write = (text) => new Promise((done) => handle.child.stdin.write(`${text}\n`, done));
    pipe = {
      handle,
      lines,
      write,
      send: (message) => write(JSON.stringify(message)),
      answer: (id) => until(() => lines.find((line) => line.id === id), `the answer to ${id}`),
    };
    const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'raw', version: '1' } };
    await pipe.send({ jsonrpc: '2.0', id: 'init', method: 'initialize', params });
    await pipe.answer('init');
    await pipe.send({ jsonrpc: '2.0', method: 'notifications/initialized' });
    return { ...pipe, fixture: await upstream.admin() };
  };

  const suspended = async (fixture, label) => fixture.call('gate', (c) => c.args.label === label && c.outcome === 'running');

  for (const [how, leave] of [
    ['closes the input', ({ child }) => child.stdin.end()],
    ['sends SIGTERM', ({ child }) => child.kill('SIGTERM')],
    ['sends SIGINT', ({ child }) => child.kill('SIGINT')],
  ]) {
    it(`ends with status 0, and the server with it, when the client ${how}`, LIMIT, async () => {
      const { handle, fixture, send } = await launch();
      await send(toolCall(1, 'gate', { label: how }));
      await suspended(fixture, how);
      leave(handle);
      assert.deepEqual(await handle.exited, { code: 0, signal: null }, handle.log);
      await ended(fixture.pid, 'the server');
    });
  }

  it('ends when the client no longer reads', LIMIT, async () => {
    const { handle, fixture, send } = await launch();
    handle.child.stdout.destroy();
    await send(toolCall(1, 'echo', { text: 'to nobody' }));
    assert.deepEqual(await handle.exited, { code: 0, signal: null }, handle.log);
    await ended(fixture.pid, 'the server');
  });

  it('carries lines up to the limit, both ways', LIMIT, async () => {
    const { send, answer } = await launch();
    const text = 'ü'.repeat(MIB);
    await send(toolCall(1, 'echo', { text }));
    assert.equal((await answer(1)).result.content[0].text, text);
    await send(toolCall(2, 'big', { size: 12 * MIB }));
    assert.equal((await answer(2)).result.content[0].text.length, 12 * MIB);
  });

  it('answers a line above the limit, a broken one and a server line above the limit, and goes on', LIMIT, async () => {
    const { send, write, answer, lines } = await launch();
    await send(toolCall(1, 'echo', { text: 'x'.repeat(5 * MIB) }));
    assert.match((await answer(1)).error.message, /4194304 bytes/);
    await write('{"jsonrpc":"2.0","id":2,"method":');
    const broken = await until(() => lines.find(({ error }) => error?.code === -32700), 'the parse error');
    assert.ok(broken.id === undefined || broken.id === 2);
    await send(toolCall(3, 'big', { size: 17 * MIB }));
    assert.match((await answer(3)).error.message, /exceeds the limit/);
    await send(toolCall(4, 'echo', { text: 'still here' }));
    assert.equal((await answer(4)).result.content[0].text, 'still here');
  });

  it('says that the server died, and starts it again for the next call', LIMIT, async () => {
    const { send, answer, fixture } = await launch();
    await send(toolCall(1, 'gate', { label: 'killed' }));
    await suspended(fixture, 'killed');
    process.kill(fixture.pid, 'SIGKILL');
    assert.match((await answer(1)).error.message, /process ended before it answered/);
    await send(toolCall(2, 'echo', { text: 'again' }));
    assert.equal((await answer(2)).result.content[0].text, 'again');
    assert.notEqual((await upstream.admin()).pid, fixture.pid);
  });
});

describe('a server that cannot be started', () => {
  it('is an error of initialize that names it', LIMIT, async () => {
    const target = ['--', 'no-such-server-anywhere'];
    const opened = connect(newest, undefined, { transport: () => downstreams.stdio.make(newest.name, { target, env: {} }) });
    await assert.rejects(opened, /no-such-server-anywhere|no such program|could not be started/i);
  });
});

describe('HTTP+SSE', () => {
  const at = world();

  // What the SDK's documentation tells applications to do: try Streamable HTTP, and on a 4xx the older transport at the same URL.
  for (const release of releases) {
    for (const path of ['/sse', '/mcp/sse']) {
      it(`${release.name}: a client that is given ${path} falls back to HTTP+SSE by itself`, LIMIT, async () => {
        const url = new URL(path, at.url);
        let refusal;
        try {
          at.clients.push(await connect(release, url));
        } catch (error) {
          refusal = error;
        }
        assert.match(`${refusal} ${refusal?.code}`, /\b405\b/);
        const { SSEClientTransport } = await import(`${release.name}/client/sse.js`);
        const peer = await at.connect(release, { transport: () => new SSEClientTransport(url) });
        const { answer } = peer.json(await peer.call('sampling', { prompt: `fallback ${path}` }));
        assert.equal(answer.content.text, 'model says hi');
      });
    }
  }

  it('a POST to a session that is gone is 404, and other sessions go on', LIMIT, async () => {
    const { SSEClientTransport } = await import(`${newest.name}/client/sse.js`);
    const other = await at.connect(newest, { transport: () => new SSEClientTransport(new URL('/sse', at.url)) });
    const post = await fetch(new URL('/messages?sessionId=gone', at.url), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(toolCall(1, 'echo', { text: 'x' })),
    });
    assert.equal(post.status, 404);
    assert.deepEqual(other.texts(await other.call('echo', { text: 'on' })), ['on']);
  });
});

describe('WebSocket', () => {
  const at = world();
  const dial = () => new WebSocket(at.url.replace(/^http/, 'ws'), 'mcp');
  const closed = (socket) => new Promise((resolve) => socket.on('close', (code) => resolve(code)));
  const opened = (socket) => new Promise((resolve) => socket.on('open', resolve));

  it('the subprotocol is mcp', LIMIT, async () => {
    const socket = dial();
    await opened(socket);
    assert.equal(socket.protocol, 'mcp');
    socket.close(1000);
    assert.equal(await closed(socket), 1000);
  });

  for (const [what, frame, code] of [
    ['a binary frame', Buffer.from('{}'), 1003],
    ['a frame above the limit', 'x'.repeat(5 * MIB), 1009],
  ]) {
    it(`${what} ends its connection with ${code}, and no other`, LIMIT, async () => {
      const { make } = downstreams.websocket;
      const other = await at.connect(newest, { transport: () => make(newest.name, { url: at.url }) });
      const socket = dial();
      socket.on('error', () => {}); // the rest of a frame that nobody reads any more
      const end = closed(socket);
      await opened(socket);
      socket.send(frame);
      assert.equal(await end, code);
      assert.deepEqual(other.texts(await other.call('echo', { text: 'on' })), ['on']);
    });
  }

  it('a page of another origin is refused at the upgrade', LIMIT, async () => {
    const socket = new WebSocket(at.url.replace(/^http/, 'ws'), 'mcp', { origin: 'https://evil.example' });
    const refusal = await new Promise((resolve) => socket.on('unexpected-response', (_request, response) => resolve(response.statusCode)));
    assert.equal(refusal, 403);
  });
});

describe('bridge serve -- COMMAND', () => {
  let upstream, bridge;
  const peers = [];
  before(async () => {
    upstream = await upstreams.stdio();
    bridge = await serve(upstream);
  }, LIMIT);
  after(async () => {
    await Promise.all(peers.map((peer) => peer.close()));
    const { pid } = await upstream.admin();
    await bridge.stop();
    await ended(pid, 'the server that the bridge started');
    await upstream.stop();
  }, LIMIT);
  const open = async () => {
    const peer = await connect(newest, bridge.url, { answers: agreeable });
    peers.push(peer);
    return peer;
  };

  it('a server that dies fails its calls of all sessions, is started again, and is listened to again', LIMIT, async () => {
    const [one, two] = [await open(), await open()];
    await one.client.subscribeResource({ uri: 'memo://counter' });
    const fixture = await upstream.admin();
    const calls = [one, two].map((peer, n) => peer.call('gate', { label: `dies-${n}` }));
    for (const call of calls) call.catch(() => {}); // they are looked at below
    for (const n of [0, 1]) await fixture.call('gate', (c) => c.args.label === `dies-${n}` && c.outcome === 'running');
    process.kill(fixture.pid, 'SIGKILL');
    for (const call of calls) await assert.rejects(call, /process ended before it answered/);
    for (const peer of [one, two]) assert.deepEqual(peer.texts(await peer.call('echo', { text: 'back' })), ['back']);
    assert.notEqual((await upstream.admin()).pid, fixture.pid);
    await until(async () => {
      await (await upstream.admin()).command('update-counter');
      return one.of('notifications/resources/updated').length > 0;
    }, 'an update from the new process');
  });
});
