// Bounds, timers and a server that goes away: each end is one that the client is told about.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { startBridge } from './harness/bridge.mjs';
import { agreeable, connect } from './harness/client.mjs';
import { startFixture } from './harness/fixture.mjs';
import { freePort, until } from './harness/process.mjs';
import { messages, rawSession, toolCall } from './harness/raw.mjs';
import { newest } from './harness/releases.mjs';
import { deferred, LIMIT, world } from './harness/world.mjs';

describe('limits', () => {
  const at = world({ flags: ['--limits.flows', '4', '--limits.rounds', '5', '--limits.state-only-rounds', '2'] });

  it('one suspended call too many ends the oldest, with an answer', LIMIT, async () => {
    const held = [];
    const peer = await at.connect(newest, { answers: { ...agreeable, elicit: (p, { asked }) => new Promise((resolve) => held.push({ p, asked, resolve })) } });
    const calls = [];
    for (let n = 0; n < 6; n++) {
      calls.push(peer.call('confirm', { subject: `full-${n}` }));
      await until(() => held.length === n + 1, `question ${n}`);
    }
    for (const ended of await Promise.all(calls.slice(0, 2))) assert.equal(ended.isError, true);
    await until(() => held.slice(0, 2).every(({ asked }) => asked.withdrawn), 'the questions of the ended calls to be withdrawn');
    for (const { resolve } of held) resolve({ action: 'accept', content: { sure: true } });
    for (const result of await Promise.all(calls.slice(2))) assert.equal(peer.json(result).answer.action, 'accept');
    const effects = await at.fixture.effects();
    assert.deepEqual([0, 1, 2, 3, 4, 5].filter((n) => effects[`confirm:full-${n}`]), [2, 3, 4, 5]);
  });

  it('a server that never has enough is stopped', LIMIT, async () => {
    const peer = await at.connect(newest, { answers: { ...agreeable, elicit: () => ({ action: 'accept', content: { ok: true } }) } });
    for (const [kind, limit] of [['form', 6], ['state', 3]]) {
      const result = await peer.call('insatiable', { kind });
      assert.equal(result.isError, true, kind);
      assert.match(peer.texts(result).join(), /round/i);
      assert.equal((await at.fixture.calls('insatiable', (c) => c.args.kind === kind)).length, limit);
    }
  });

  it('cancel during the pause of a state-only round stops the rounds', LIMIT, async () => {
    const peer = await at.connect(newest);
    const abort = new AbortController();
    const call = peer.call('state-only', { rounds: 50 }, { signal: abort.signal });
    await at.fixture.call('state-only', (c) => c.args.rounds === 50);
    abort.abort();
    await assert.rejects(call);
    await peer.call('echo', { text: 'after' });
    assert.equal((await at.fixture.effects())['state-only'], undefined);
  });
});

describe('timers', () => {
  const at = world({ flags: ['--timeouts.heartbeat', '1s', '--timeouts.server-request', '2500ms', '--timeouts.commit', '200ms', '--timeouts.keep-alive', '1s'] });

  it('a caller who wants progress gets some while the user decides', LIMIT, async () => {
    const answer = deferred();
    const peer = await at.connect(newest, { answers: { ...agreeable, elicit: () => answer.promise } });
    const seen = [];
    const call = peer.client.callTool({ name: 'progress-confirm', arguments: { label: 'beat' } }, undefined, { onprogress: (p) => seen.push(p.progress) });
    await until(() => peer.asked.length === 1, 'the question');
    const before = seen.length;
    await until(() => seen.length > before, 'a heartbeat');
    answer.resolve({ action: 'accept', content: { go: true } });
    assert.deepEqual(peer.texts(await call), ['done']);
    assert.ok(seen.every((value, i) => i === 0 || value > seen[i - 1]), `saw ${seen}`);
  });

  it('an elicitation without an answer is a cancel for the server, and withdrawn from the user (F.3)', LIMIT, async () => {
    const peer = await at.connect(newest, { answers: { ...agreeable, elicit: () => new Promise(() => {}) } });
    assert.deepEqual(peer.json(await peer.call('confirm', { subject: 'silent' })).answer, { action: 'cancel' });
    await until(() => peer.asked[0].withdrawn, 'the question to be withdrawn');
    assert.equal((await at.fixture.effects())['confirm:silent'], undefined);
  });

  it('sampling without an answer ends the call', LIMIT, async () => {
    const peer = await at.connect(newest, { answers: { ...agreeable, sample: () => new Promise(() => {}) } });
    assert.equal((await peer.call('sampling', { prompt: 'silent' })).isError, true);
    assert.equal((await at.fixture.calls('sampling', (c) => c.args.prompt === 'silent')).length, 1);
  });

  it('a slow response becomes a stream, and a quiet stream carries comments', LIMIT, async () => {
    const raw = await rawSession(at.url);
    const response = await raw.post(toolCall(1, 'gate', { label: 'quiet' }));
    assert.match(response.headers.get('content-type'), /event-stream/);
    let text = '';
    for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      if (text.includes('\n:') || text.startsWith(':')) await at.fixture.command('open', { label: 'quiet' });
    }
    assert.match(text, /through quiet/);
    await raw.end();
  });
});

describe('what the client can take', () => {
  const at = world();

  it('a client that accepts only JSON gets JSON, and cannot be asked', LIMIT, async () => {
    const raw = await rawSession(at.url);
    const only = { accept: 'application/json' };
    const plain = await raw.post(toolCall(1, 'steps', { count: 2 }, { progressToken: 1 }), only);
    assert.match(plain.headers.get('content-type'), /application\/json/);
    assert.equal((await plain.json()).result.content[0].text, '2 steps');
    const asked = await raw.post(toolCall(2, 'confirm', { subject: 'json' }), only);
    assert.equal((await asked.json()).result.isError, true);
    await raw.end();
  });

  it('a batch of 2025-03-26 is answered in full, questions included', LIMIT, async () => {
    const raw = await rawSession(at.url, { version: '2025-03-26', capabilities: { sampling: {} } });
    const batch = [
      toolCall(1, 'echo', { text: 'one' }),
      { jsonrpc: '2.0', method: 'notifications/roots/list_changed' },
      toolCall('two', 'sampling', { prompt: 'batch' }),
      { jsonrpc: '2.0', id: 3, method: 'no/such' },
    ];
    const answers = new Map();
    for await (const received of messages(await raw.post(batch))) {
      for (const message of [received].flat()) {
        if (message.method === 'sampling/createMessage') await raw.post({ jsonrpc: '2.0', id: message.id, result: agreeable.sample() });
        else answers.set(message.id, message);
      }
    }
    assert.deepEqual([...answers.keys()].sort(), [1, 3, 'two']);
    assert.equal(answers.get(1).result.content[0].text, 'one');
    assert.equal(JSON.parse(answers.get('two').result.content[0].text).answer.model, 'test-model');
    assert.equal(answers.get(3).error.code, -32601);
    await raw.end();
  });

  it('a message over the limit is 413', LIMIT, async () => {
    const raw = await rawSession(at.url);
    const response = await raw.post(toolCall(1, 'echo', { text: 'x'.repeat(5 << 20) }));
    assert.equal(response.status, 413);
    await response.body?.cancel();
    await raw.end();
  });
});

describe('a server that goes away', () => {
  let bridge, fixture, port;
  before(async () => {
    port = await freePort();
    bridge = await startBridge(`http://127.0.0.1:${port}/mcp`);
  }, LIMIT);
  after(async () => {
    await bridge?.stop();
    await fixture?.stop();
  }, LIMIT);

  it('is missing at first: initialize says so; then it is there; then it dies in a call; then it is back', LIMIT, async () => {
    await assert.rejects(connect(newest, bridge.url), (error) => typeof error.code === 'number' && !/fetch failed/.test(error.message));

    fixture = await startFixture({ port });
    const peer = await connect(newest, bridge.url);
    assert.deepEqual(peer.texts(await peer.call('echo', { text: 'here' })), ['here']);

    const call = peer.call('gate', { label: 'dies' }).then((result) => result.isError === true, (error) => typeof error.code === 'number');
    await fixture.call('gate', (c) => c.args.label === 'dies');
    await fixture.stop();
    assert.equal(await call, true, 'the call ends with an error');
    await assert.rejects(peer.call('echo', { text: 'gone' }), (error) => error.code === -32603);

    fixture = await startFixture({ port });
    assert.deepEqual(peer.texts(await peer.call('echo', { text: 'back' })), ['back']);
    await peer.close();
  });
});
