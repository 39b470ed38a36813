// One URL for both eras: a modern client is passed through and sees no difference to the server itself.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { startBridge } from './harness/bridge.mjs';
import { startFixture } from './harness/fixture.mjs';
import { until } from './harness/process.mjs';
import { LIMIT } from './harness/world.mjs';

const META = 'io.modelcontextprotocol/';
const json = (result) => JSON.parse(result.content[0].text);

async function connect(url, mode = 'auto') {
  const capabilities = { elicitation: { form: {} }, sampling: {}, roots: {} };
  const client = new Client({ name: 'modern', version: '1' }, { capabilities, versionNegotiation: { mode } });
  const answers = { sure: true, name: 'Ada', colour: 'red', who: 'me' };
  client.setRequestHandler('elicitation/create', ({ params }) => {
    const [name] = Object.keys(params.requestedSchema.properties);
    return { action: 'accept', content: { [name]: answers[name] } };
  });
  client.setRequestHandler('sampling/createMessage', () => ({ role: 'assistant', model: 'm', content: { type: 'text', text: 'sampled' } }));
  client.setRequestHandler('roots/list', () => ({ roots: [{ uri: 'file:///r' }] }));
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return client;
}

describe('a modern client', () => {
  let fixture, bridge, client;
  before(async () => {
    fixture = await startFixture();
    bridge = await startBridge(fixture.url);
    client = await connect(bridge.url);
  }, LIMIT);
  after(async () => {
    await client?.close();
    await bridge?.stop();
    await fixture?.stop();
  }, LIMIT);

  it('finds a modern server at the bridge’s URL', () => {
    assert.equal(client.getNegotiatedProtocolVersion?.() ?? '2026-07-28', '2026-07-28');
    assert.equal(client.getServerVersion().name, 'fixture');
  });

  it('gets what it gets from the server itself', LIMIT, async () => {
    const direct = await connect(fixture.url);
    const both = (ask) => Promise.all([client, direct].map(ask));
    for (const ask of [(c) => c.listTools(), (c) => c.listPrompts(), (c) => c.listResources(), (c) => c.callTool({ name: 'content', arguments: {} })]) {
      const [through, straight] = await both(ask);
      assert.deepEqual(through, straight);
    }
    await direct.close();
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

  it('cancels by closing the stream', LIMIT, async () => {
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
  });

  it('its headers and parameters arrive as they were sent', LIMIT, async () => {
    await client.listTools();
    const seen = json(await client.callTool({ name: 'headers', arguments: { region: 'zürich', options: { tier: 1 } } }));
    assert.equal(seen.headers['mcp-param-region'], '=?base64?esO8cmljaA==?=');
  });
});
