// The peers proven against each other without a bridge: what fails here is the fixture's fault.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { startFixture } from '../harness/fixture.mjs';
import { newest, releases } from '../harness/releases.mjs';

const LIMIT = { timeout: 20_000 };

async function modern(url, handlers = {}) {
  const capabilities = { elicitation: { form: {}, url: {} }, sampling: {}, roots: {} };
  const client = new Client({ name: 'modern', version: '1' }, { capabilities, versionNegotiation: { mode: { pin: '2026-07-28' } } });
  for (const [method, handler] of Object.entries(handlers)) client.setRequestHandler(method, (request) => handler(request.params));
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  return client;
}

const json = (result) => JSON.parse(result.content[0].text);

describe('fixture', () => {
  let fixture, client;
  const asked = [];
  before(async () => {
    fixture = await startFixture();
    client = await modern(fixture.url, {
      'elicitation/create': (params) => {
        asked.push(params.message ?? params.url);
        const [name] = Object.keys(params.requestedSchema?.properties ?? {});
        const values = { name: 'Ada', colour: 'red', sure: true, who: 'me', go: true, tone: 'kind', word: 'swordfish', ok: true };
        return params.mode === 'url' ? { action: 'accept' } : { action: 'accept', content: { [name]: values[name] } };
      },
      'sampling/createMessage': () => ({ role: 'assistant', model: 'm', content: { type: 'text', text: 'sampled' } }),
      'roots/list': () => ({ roots: [{ uri: 'file:///r' }] }),
    });
  }, LIMIT);
  after(async () => {
    await client?.close();
    await fixture?.stop();
  }, LIMIT);

  for (const release of releases) {
    it(`refuses the legacy client of ${release.name}`, LIMIT, async () => {
      const { Client: Legacy, StreamableHTTPClientTransport: Transport } = await release.load();
      const legacy = new Legacy({ name: 'legacy', version: '1' }, { capabilities: {} });
      await assert.rejects(legacy.connect(new Transport(new URL(fixture.url))), /HTTP 400|2026-07-28|Unsupported/i);
    });

    it(`${release.name} negotiates ${release.version}`, async () => {
      const { types } = await release.load();
      assert.equal(types.LATEST_PROTOCOL_VERSION, release.version);
    });
  }

  it('asks one round and records the answer', LIMIT, async () => {
    const result = json(await client.callTool({ name: 'confirm', arguments: { subject: 's' } }));
    assert.deepEqual(result.answer, { action: 'accept', content: { sure: true } });
    assert.equal((await fixture.effects())['confirm:s'], 1);
    assert.deepEqual((await fixture.calls('confirm')).map((c) => c.outcome), ['input_required', 'completed']);
  });

  it('asks two rounds under sealed state', LIMIT, async () => {
    const result = json(await client.callTool({ name: 'two-rounds', arguments: { label: 'L' } }));
    assert.deepEqual(result, { label: 'L', name: 'Ada', colour: 'red', keys: ['colour'] });
  });

  it('drops the state when a round has none', LIMIT, async () => {
    assert.deepEqual(json(await client.callTool({ name: 'state-dropped', arguments: {} })), { stateInLastRound: null, keys: ['last'] });
  });

  it('sheds load by state alone', LIMIT, async () => {
    assert.deepEqual(json(await client.callTool({ name: 'state-only', arguments: { rounds: 3 } })), { done: 3, answers: null });
  });

  it('asks for three inputs in one round', LIMIT, async () => {
    const { answers } = json(await client.callTool({ name: 'three', arguments: { label: 'x' } }));
    assert.deepEqual(Object.keys(answers).sort(), ['model', 'roots', 'who']);
  });

  it('asks in prompts and resources', LIMIT, async () => {
    const prompt = await client.getPrompt({ name: 'ask', arguments: { topic: 't' } });
    assert.equal(JSON.parse(prompt.messages[0].content.text).answer.content.tone, 'kind');
    const resource = await client.readResource({ uri: 'memo://ask' });
    assert.equal(JSON.parse(resource.contents[0].text).answer.content.word, 'swordfish');
  });

  it('carries parameters as headers and tells an unusual tool name', LIMIT, async () => {
    await client.listTools();
    const seen = json(await client.callTool({ name: 'headers', arguments: { region: 'zürich', options: { tier: 3, dryRun: true } } }));
    assert.equal(seen.headers['mcp-param-region'], '=?base64?esO8cmljaA==?=');
    assert.equal(seen.headers['mcp-param-tier'], '3');
    const unusual = await client.callTool({ name: '名前 ツール', arguments: { 値: '1' } });
    assert.equal(unusual.content[0].text, '値=1');
  });

  it('hides a tool with an illegal annotation from a conforming client', LIMIT, async () => {
    const { tools } = await client.listTools();
    assert.ok(tools.some((tool) => tool.name === 'headers'));
    assert.ok(!tools.some((tool) => tool.name === 'bad-headers'));
  });

  it('pages its resources', LIMIT, async () => {
    const { resources } = await client.listResources();
    assert.equal(resources.length, 10);
  });

  it('sees a cancelled call', LIMIT, async () => {
    const abort = new AbortController();
    const call = client.callTool({ name: 'gate', arguments: { label: 'c' } }, { signal: abort.signal });
    await fixture.call('gate', (c) => c.outcome === 'running');
    abort.abort();
    await assert.rejects(call);
    await fixture.call('gate', (c) => c.outcome === 'cancelled');
    await fixture.command('open', { label: 'c' });
    assert.equal((await fixture.effects())['gate:c'], undefined);
  });

  it('reports changes to who listens', LIMIT, async () => {
    const changes = [];
    client.setNotificationHandler('notifications/resources/updated', (n) => void changes.push(n.params.uri));
    client.setNotificationHandler('notifications/tools/list_changed', () => void changes.push('tools'));
    await client.listen({ toolsListChanged: true, resourceSubscriptions: ['memo://counter'] });
    await fixture.listening(() => true);
    await fixture.command('add-tool', { name: 'later' });
    await fixture.command('update-counter');
    const { until } = await import('../harness/process.mjs');
    await until(() => changes.length === 2, 'both changes');
    assert.deepEqual(changes.sort(), ['memo://counter', 'tools']);
    assert.ok((await client.listTools()).tools.some((tool) => tool.name === 'later'));
  });

  it('refuses a client without the capability', LIMIT, async () => {
    const bare = new Client({ name: 'bare', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
    await bare.connect(new StreamableHTTPClientTransport(new URL(fixture.url)));
    await assert.rejects(bare.callTool({ name: 'confirm', arguments: { subject: 'n' } }), (error) => error.code === -32021);
    await bare.close();
  });

  it('is not reachable for a legacy conversation at all', LIMIT, async () => {
    const { Client: Legacy, StreamableHTTPClientTransport: Transport } = await newest.load();
    await assert.rejects(new Legacy({ name: 'l', version: '1' }).connect(new Transport(new URL(fixture.url))));
  });
});
