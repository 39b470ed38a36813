// Everything that is no question: lists, results, errors, what the server learns of its client.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { newest, releases } from './harness/releases.mjs';
import { LIMIT, world } from './harness/world.mjs';

const at = world();
const META = 'io.modelcontextprotocol/';

for (const release of releases) {
  describe(`${release.name} (${release.version})`, () => {
    it('initialize: version, server, instructions and capabilities come from discover', LIMIT, async () => {
      const peer = await at.connect(release);
      const [{ result }] = peer.received;
      assert.equal(result.protocolVersion, release.version);
      assert.equal(result.serverInfo.name, 'fixture');
      assert.equal(result.serverInfo.version, '1.2.3');
      assert.equal(peer.client.getInstructions(), 'Ask away.');
      const capabilities = peer.client.getServerCapabilities();
      assert.deepEqual(capabilities.tools, { listChanged: true });
      assert.deepEqual(capabilities.resources, { listChanged: true, subscribe: true });
      assert.deepEqual(capabilities.logging, {});
    });

    it('ping is answered', LIMIT, async () => {
      const peer = await at.connect(release);
      assert.deepEqual(await peer.client.ping(), {});
      assert.deepEqual(peer.received.at(-1).result, {});
    });

    it('tools are listed, but for the one with an illegal annotation', LIMIT, async () => {
      const peer = await at.connect(release);
      const { tools } = await peer.client.listTools();
      const names = tools.map((tool) => tool.name);
      assert.ok(names.includes('echo') && names.includes('名前 ツール'));
      assert.ok(!names.includes('bad-headers'), 'B-23');
      assert.ok(!JSON.stringify(tools).includes('x-mcp-header'), 'the annotation is the bridge’s business');
      for (const { outputSchema } of peer.received.at(-1).result.tools) {
        if (outputSchema !== undefined) assert.equal(outputSchema.type, 'object');
      }
    });

    it('a plain call', LIMIT, async () => {
      const peer = await at.connect(release);
      const result = await peer.call('echo', { text: 'ünïcode <&> \u2028 😀 "quoted"' });
      assert.deepEqual(peer.texts(result), ['ünïcode <&> \u2028 😀 "quoted"']);
    });

    it('structured output, object and not', LIMIT, async () => {
      const peer = await at.connect(release);
      await peer.client.listTools();
      const sum = await peer.call('add', { a: 20, b: 22 });
      assert.deepEqual(JSON.parse(peer.texts(sum)[0]), { sum: 42 });
      if (release.structured) assert.deepEqual(sum.structuredContent, { sum: 42 });
      const list = await peer.call('list-numbers');
      assert.ok(peer.texts(list).some((t) => JSON.stringify(tryJSON(t)) === '[1,2,3]'), 'B-36: the data survives as text');
    });

    it('content of every kind, in what the revision knows', LIMIT, async () => {
      const peer = await at.connect(release);
      const { content } = await peer.call('content');
      assert.equal(content.length, 5, 'B-39: every block keeps its place');
      const types = content.map((block) => block.type);
      const audio = release.version === '2024-11-05' ? 'resource' : 'audio';
      const link = release.structured ? 'resource_link' : 'text';
      assert.deepEqual(types, ['text', 'image', audio, 'resource', link]);
      assert.deepEqual(content[0].annotations, { audience: ['user'], priority: 0.5 });
    });

    it('a result of a megabyte', LIMIT, async () => {
      const peer = await at.connect(release);
      const result = await peer.call('big', { size: 1 << 20 });
      assert.equal(result.content[0].text.length, 1 << 20);
    });

    it('a tool that fails, a request that fails, a tool that is not there', LIMIT, async () => {
      const peer = await at.connect(release);
      const failed = await peer.call('fail');
      assert.equal(failed.isError, true);
      assert.match(peer.texts(failed)[0], /on purpose/);
      await assert.rejects(peer.client.getPrompt({ name: 'refuse', arguments: {} }), (error) => error.code === -32602 && /refused on purpose/.test(error.message));
      await assert.rejects(peer.call('no-such-tool'), (error) => typeof error.code === 'number');
      await assert.rejects(peer.client.readResource({ uri: 'memo://missing' }), (error) => [-32002, -32602].includes(error.code));
      await assert.rejects(peer.client.request({ method: 'vendor/unknown' }, peer.types.EmptyResultSchema), (error) => error.code === -32601);
      assert.deepEqual(peer.texts(await peer.call('echo', { text: 'the session lives' })), ['the session lives']);
    });

    it('a tool name that no header carries as it is', LIMIT, async () => {
      const peer = await at.connect(release);
      assert.deepEqual(peer.texts(await peer.call('名前 ツール', { 値: '七' })), ['値=七']);
    });

    it('parameters that travel as headers, listed before or not (B-25)', LIMIT, async () => {
      const peer = await at.connect(release);
      const args = { region: ' zürich ', options: { tier: 42, dryRun: false }, note: 'n' };
      for (const listed of [false, true]) {
        if (listed) await peer.client.listTools();
        const seen = peer.json(await peer.call('headers', args));
        assert.deepEqual(seen.args, args);
        assert.equal(seen.headers['mcp-param-region'], `=?base64?${Buffer.from(' zürich ').toString('base64')}?=`);
        assert.equal(seen.headers['mcp-param-tier'], '42');
        assert.equal(seen.headers['mcp-param-dry-run'], 'false');
      }
    });

    it('pages under opaque cursors', LIMIT, async () => {
      const peer = await at.connect(release);
      const uris = [];
      let cursor, pages = 0;
      do {
        const page = await peer.client.listResources(cursor === undefined ? undefined : { cursor });
        uris.push(...page.resources.map((r) => r.uri));
        cursor = page.nextCursor;
        pages++;
      } while (cursor !== undefined);
      assert.equal(pages, 3);
      assert.equal(new Set(uris).size, 10);
    });

    it('prompts, resources, templates and completion', LIMIT, async () => {
      const peer = await at.connect(release);
      assert.deepEqual((await peer.client.listPrompts()).prompts.map((p) => p.name).sort(), ['ask', 'greet', 'refuse']);
      const prompt = await peer.client.getPrompt({ name: 'greet', arguments: { who: 'Ada' } });
      assert.equal(prompt.messages[0].content.text, 'Greet Ada');
      assert.equal((await peer.client.listResourceTemplates()).resourceTemplates[0].uriTemplate, 'memo://item/{id}');
      assert.equal((await peer.client.readResource({ uri: 'memo://item/7' })).contents[0].text, 'item 7');
      const complete = (ref, argument) => peer.client.request({ method: 'completion/complete', params: { ref, argument } }, peer.types.CompleteResultSchema);
      const names = await complete({ type: 'ref/prompt', name: 'greet' }, { name: 'who', value: 'A' });
      assert.deepEqual(names.completion.values, ['Ada', 'Alan']);
      const ids = await complete({ type: 'ref/resource', uri: 'memo://item/{id}' }, { name: 'id', value: 't' });
      assert.deepEqual(ids.completion.values, ['two', 'three']);
    });

    it('the server learns who its client is and exactly what it declared', LIMIT, async () => {
      const peer = await at.connect(release);
      const { envelope } = peer.json(await peer.call('whoami'));
      assert.equal(envelope[`${META}protocolVersion`], '2026-07-28');
      assert.equal(envelope[`${META}clientInfo`].name, `legacy-${release.name}`);
      const mirrored = { ...peer.capabilities, roots: {} };
      assert.deepEqual(envelope[`${META}clientCapabilities`], mirrored, 'A.5: roots.listChanged does not exist upstream');
      const bare = await at.connect(release, { answers: {} });
      const told = bare.json(await bare.call('whoami'));
      assert.deepEqual(told.envelope[`${META}clientCapabilities`], {});
    });
  });
}

describe('upstream', () => {
  it('nothing legacy leaks up (P-5)', LIMIT, async () => {
    const peer = await at.connect(newest);
    await peer.client.ping();
    await peer.client.setLoggingLevel('debug');
    await peer.call('echo', { text: 'x' });
    await peer.client.sendRootsListChanged();
    const { requests } = await at.fixture.record();
    assert.ok(requests.length > 0);
    for (const { method, headers, rpc, params } of requests) {
      assert.equal(method, 'POST', 'the upstream is never asked by GET or DELETE');
      for (const header of ['mcp-session-id', 'last-event-id', 'cookie', 'origin']) assert.equal(headers[header], undefined, header);
      assert.equal(headers['mcp-method'], rpc);
      assert.equal(headers['mcp-protocol-version'], '2026-07-28');
      assert.equal(params._meta[`${META}protocolVersion`], '2026-07-28');
      assert.doesNotMatch(rpc, /^(initialize|ping|logging\/setLevel|resources\/(un)?subscribe|tasks\/|notifications\/)/);
    }
  });

  it('authorization is carried up, and a 401 comes down with its challenge', LIMIT, async () => {
    const auth = { headers: { authorization: 'Bearer right' } };
    const peer = await at.connect(newest, { fetchOptions: auth });
    try {
      await at.fixture.command('require-token', { token: 'right' });
      assert.deepEqual(peer.texts(await peer.call('echo', { text: 'authorized' })), ['authorized']);
      await at.fixture.command('require-token', { token: 'other' });
      await assert.rejects(peer.call('echo', { text: 'refused' }), (error) => /401/.test(`${error.code} ${error.message}`));
      const response = await fetch(at.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', 'mcp-session-id': peer.transport.sessionId, ...auth.headers },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'echo', arguments: { text: 'raw' } } }),
      });
      assert.equal(response.status, 401);
      assert.match(response.headers.get('www-authenticate'), /^Bearer resource_metadata=.*scope="tools:call"/);
    } finally {
      await at.fixture.command('require-token', {});
    }
  });
});

function tryJSON(value) {
  try {
    return JSON.parse(value);
  } catch {
    return undefined;
  }
}
