// One URL for both eras: a modern client is passed through and sees no difference to the server itself.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { bridgeBinary } from './harness/bridge.mjs';
import { startFixture } from './harness/fixture.mjs';
import { until } from './harness/process.mjs';
import { serve, upstreams } from './harness/transports.mjs';
import { LIMIT } from './harness/world.mjs';

const META = 'io.modelcontextprotocol/';
const json = (result) => JSON.parse(result.content[0].text);

const over = {
  http: (url) => new StreamableHTTPClientTransport(new URL(url)),
  /** Starts `bridge stdio` in front of an upstream. */
  stdio: async ({ target, env }) =>
    new StdioClientTransport({ command: await bridgeBinary(), args: ['stdio', ...target], env: { ...process.env, ...env }, stderr: 'ignore' }),
};

async function connect(transport, mode = 'auto') {
  const capabilities = { elicitation: { form: {} }, sampling: {}, roots: {} };
  const client = new Client({ name: 'modern', version: '1' }, { capabilities, versionNegotiation: { mode } });
  const answers = { sure: true, name: 'Ada', colour: 'red', who: 'me' };
  client.setRequestHandler('elicitation/create', ({ params }) => {
    const [name] = Object.keys(params.requestedSchema.properties);
    return { action: 'accept', content: { [name]: answers[name] } };
  });
  client.setRequestHandler('sampling/createMessage', () => ({ role: 'assistant', model: 'm', content: { type: 'text', text: 'sampled' } }));
  client.setRequestHandler('roots/list', () => ({ roots: [{ uri: 'file:///r' }] }));
  await client.connect(await transport);
  return client;
}

const ways = Object.keys(over).flatMap((way) => Object.keys(upstreams).map((out) => [way, out]));

for (const [way, out] of ways) {
  describe(`a modern client → ${way} → bridge → ${out}`, () => {
    let upstream, fixture, bridge, client;
    before(async () => {
      upstream = await upstreams[out]();
      if (way === 'http') bridge = await serve(upstream);
      client = await connect(way === 'http' ? over.http(bridge.url) : over.stdio(upstream));
      fixture = await upstream.admin();
    }, LIMIT);
    after(async () => {
      await client?.close();
      await bridge?.stop();
      await upstream?.stop();
    }, LIMIT);

    it('finds a modern server at the bridge', () => {
      assert.equal(client.getNegotiatedProtocolVersion?.() ?? '2026-07-28', '2026-07-28');
      assert.equal(client.getServerVersion().name, 'fixture');
    });

    it('gets what it gets from the server itself', LIMIT, async () => {
      const itself = upstream.url ? fixture : await startFixture(); // a command: the same server over the client's transport
      const [, command, ...args] = upstream.target;
      const same = way === 'stdio' && out === 'stdio' ? new StdioClientTransport({ command, args, stderr: 'ignore' }) : over.http(itself.url);
      const direct = await connect(same);
      const both = (ask) => Promise.all([client, direct].map(ask));
      for (const ask of [(c) => c.listTools(), (c) => c.listPrompts(), (c) => c.listResources(), (c) => c.callTool({ name: 'content', arguments: {} })]) {
        const [through, straight] = await both(ask);
        assert.deepEqual(through, straight);
      }
      await direct.close();
      if (itself !== fixture) await itself.stop();
    });

    it('fulfils its rounds itself', LIMIT, async () => {
      assert.deepEqual(json(await client.callTool({ name: 'two-rounds', arguments: { label: 'm' } })), {
        label: 'm', name: 'Ada', colour: 'red', keys: ['colour'],
      });
      const runs = await fixture.calls('two-rounds');
      assert.equal(runs[0].envelope[`${META}clientInfo`].name, 'modern');
    });

    it('streams progress', LIMIT, async () => {
      const seen = [];
      await client.callTool({ name: 'steps', arguments: { count: 3 } }, { onprogress: (p) => seen.push(p.progress) });
      assert.deepEqual(seen, [1, 2, 3]);
    });

    it('cancels in its own way', LIMIT, async () => {
      const abort = new AbortController();
      const call = client.callTool({ name: 'gate', arguments: { label: 'modern' } }, { signal: abort.signal });
      await fixture.call('gate', (c) => c.args.label === 'modern');
      abort.abort();
      await assert.rejects(call);
      await fixture.call('gate', (c) => c.args.label === 'modern' && c.outcome === 'cancelled');
    });

    it('listens', LIMIT, async () => {
      const seen = [];
      client.setNotificationHandler('notifications/resources/updated', (n) => void seen.push(n.params.uri));
      await client.listen({ resourceSubscriptions: ['memo://counter'] });
      await fixture.command('update-counter');
      await until(() => seen.length === 1, 'the update');
      assert.deepEqual(seen, ['memo://counter']);
    });

    // A command sees no headers; on stdio the client has none, and the bridge makes them.
    if (out === 'http') {
      it('its headers and parameters arrive as they were sent', LIMIT, async () => {
        await client.listTools();
        const seen = json(await client.callTool({ name: 'headers', arguments: { region: 'zürich', options: { tier: 1 } } }));
        assert.equal(seen.headers['mcp-param-region'], '=?base64?esO8cmljaA==?=');
      });
    }
  });
}

describe('a modern client in front of a command', () => {
  let upstream, bridge;
  before(async () => {
    upstream = await upstreams.stdio();
    bridge = await serve(upstream);
  }, LIMIT);
  after(async () => {
    await bridge?.stop();
    await upstream?.stop();
  }, LIMIT);

  const post = (method, headers, params = {}) =>
    fetch(bridge.url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers },
      body: JSON.stringify({
        jsonrpc: '2.0', id: 'x', method,
        params: { ...params, _meta: { [`${META}protocolVersion`]: '2026-07-28', [`${META}clientCapabilities`]: {} } },
      }),
    });

  for (const [what, method, headers, status, code] of [
    ['a version that the body does not have', 'tools/list', { 'mcp-protocol-version': '2025-11-25', 'mcp-method': 'tools/list' }, 400, -32020],
    ['no method', 'tools/list', { 'mcp-protocol-version': '2026-07-28' }, 400, -32020],
    ['an unknown method', 'no/such', { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'no/such' }, 404, -32601],
  ]) {
    it(`${what} is answered ${status}`, LIMIT, async () => {
      const response = await post(method, headers);
      assert.equal(response.status, status);
      const { id, error } = await response.json();
      assert.deepEqual([id, error.code], ['x', code]);
    });
  }

  it('an argument that its header contradicts is not executed', LIMIT, async () => {
    const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': 'headers', 'mcp-param-region': 'oslo' };
    const response = await post('tools/call', headers, { name: 'headers', arguments: { region: 'bergen' } });
    assert.equal(response.status, 400);
    assert.equal((await response.json()).error.code, -32020);
    assert.equal((await (await upstream.admin()).calls('headers')).length, 0);
  });
});
