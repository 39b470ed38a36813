// What no SDK client sends: ids used twice, answers too late or by the wrong session, odd headers, broken bodies.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { events, messages, rawSession, toolCall } from './harness/raw.mjs';
import { LIMIT, world } from './harness/world.mjs';

const at = world();
const json = (message) => JSON.parse(message.result.content[0].text);
const settled = async (exchange) => (await Array.fromAsync(exchange)).at(-1);

if (!Array.fromAsync) {
  Array.fromAsync = async (iterable) => {
    const all = [];
    for await (const item of iterable) all.push(item);
    return all;
  };
}

describe('ids', () => {
  it('one id used by every request of a session never crosses', LIMIT, async () => {
    const raw = await rawSession(at.url);
    const labels = ['id-a', 'id-b', 'id-c'];
    const exchanges = labels.map((label) => settled(raw.exchange(toolCall(1, 'gate', { label }))));
    for (const label of labels) await at.fixture.call('gate', (c) => c.args.label === label);
    for (const label of [...labels].reverse()) await at.fixture.command('open', { label });
    const answered = await Promise.all(exchanges);
    assert.deepEqual(answered.map((m) => [m.id, m.result.content[0].text]), labels.map((label) => [1, `through ${label}`]));
    await raw.end();
  });

  for (const id of [0, 1, '1', 'ü "x"', '9007199254740993', -5]) {
    it(`the id ${JSON.stringify(id)} comes back with its type`, LIMIT, async () => {
      const raw = await rawSession(at.url);
      const { id: back } = await settled(raw.exchange(toolCall(id, 'echo', { text: 'x' })));
      assert.strictEqual(back, id);
      await raw.end();
    });
  }

  it('the progress token 0 comes back as 0', LIMIT, async () => {
    const raw = await rawSession(at.url);
    const all = await Array.fromAsync(raw.exchange(toolCall(7, 'steps', { count: 2 }, { progressToken: 0 })));
    assert.deepEqual(all.slice(0, -1).map((m) => m.params.progressToken), [0, 0]);
    await raw.end();
  });
});

describe('answers', () => {
  const accept = (id) => ({ jsonrpc: '2.0', id, result: { action: 'accept', content: { sure: true } } });

  it('an answer counts once, only from the session that was asked', LIMIT, async () => {
    const [asked, stranger] = [await rawSession(at.url), await rawSession(at.url)];
    const exchange = asked.exchange(toolCall(1, 'confirm', { subject: 'once' }));
    const question = (await exchange.next()).value;
    assert.equal(question.method, 'elicitation/create');
    assert.notEqual(question.id, 0, 'a cancel of id 0 is ignored by old clients');

    assert.equal((await stranger.post(accept(question.id))).status, 202);
    assert.equal((await at.fixture.calls('confirm', (c) => c.args.subject === 'once')).length, 1, 'a stranger answered');

    for (let n = 0; n < 3; n++) assert.equal((await asked.post(accept(question.id))).status, 202);
    assert.deepEqual(json((await exchange.next()).value).answer, { action: 'accept', content: { sure: true } });
    assert.equal((await at.fixture.calls('confirm', (c) => c.args.subject === 'once')).length, 2);
    assert.equal((await at.fixture.effects())['confirm:once'], 1);
    await Promise.all([asked.end(), stranger.end()]);
  });

  it('an answer after the cancel is accepted and ignored', LIMIT, async () => {
    const raw = await rawSession(at.url);
    const exchange = raw.exchange(toolCall('c', 'confirm', { subject: 'late' }));
    const question = (await exchange.next()).value;
    await raw.post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'c' } });
    const rest = await Array.fromAsync(exchange);
    assert.deepEqual(rest.map((m) => m.method), ['notifications/cancelled'], 'withdrawn, then silence');
    assert.equal(rest[0].params.requestId, question.id);
    assert.equal((await raw.post(accept(question.id))).status, 202);
    await settled(raw.exchange(toolCall(2, 'echo', { text: 'after' })));
    assert.equal((await at.fixture.calls('confirm', (c) => c.args.subject === 'late')).length, 1);
    assert.equal((await at.fixture.effects())['confirm:late'], undefined);
    await raw.end();
  });

  it('a response to nothing is accepted and ignored', LIMIT, async () => {
    const raw = await rawSession(at.url);
    assert.equal((await raw.post(accept('nobody asked'))).status, 202);
    await raw.end();
  });
});

describe('sessions', () => {
  it('an unknown session is 404, but initialize with a stale id opens a new one', LIMIT, async () => {
    const raw = await rawSession(at.url);
    const stale = { 'mcp-session-id': 'no-such-session' };
    assert.equal((await raw.post(toolCall(1, 'echo', { text: 'x' }), stale)).status, 404);
    const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'r', version: '1' } };
    const opened = await raw.post({ jsonrpc: '2.0', id: 0, method: 'initialize', params }, stale);
    assert.equal(opened.status, 200);
    assert.ok(opened.headers.get('mcp-session-id'));
    await raw.end();
  });

  it('a request without a session is served, and cannot be asked anything', LIMIT, async () => {
    const post = (message) =>
      fetch(at.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        body: JSON.stringify(message),
      });
    const echoed = (await messages(await post(toolCall(1, 'echo', { text: 'stateless' }))).next()).value;
    assert.equal(echoed.result.content[0].text, 'stateless');
    const asked = (await messages(await post(toolCall(2, 'confirm', { subject: 'stateless' }))).next()).value;
    assert.equal(asked.result.isError, true);
  });

  it('session ids are unguessable and of visible ASCII', LIMIT, async () => {
    const all = await Promise.all(Array.from({ length: 5 }, () => rawSession(at.url)));
    const ids = all.map((raw) => raw.session);
    assert.equal(new Set(ids).size, 5);
    for (const id of ids) assert.match(id, /^[\x21-\x7e]{22,}$/);
    await Promise.all(all.map((raw) => raw.end()));
  });

  it('versions: what is known is echoed, anything else gets the newest', LIMIT, async () => {
    for (const version of ['2024-11-05', '2025-03-26', '2025-06-18', '2025-11-25']) {
      const raw = await rawSession(at.url, { version });
      assert.equal(raw.initialized.result.protocolVersion, version);
      await raw.end();
    }
    for (const version of ['2026-07-28', '1999-01-01']) {
      const params = { protocolVersion: version, capabilities: {}, clientInfo: { name: 'r', version: '1' } };
      const response = await fetch(at.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params }),
      });
      assert.equal((await messages(response).next()).value.result.protocolVersion, '2025-11-25', 'A-13');
    }
  });
});

describe('streams', () => {
  it('a priming event opens a stream of 2025-11-25 and of no other revision (E-7)', LIMIT, async () => {
    for (const version of ['2025-03-26', '2025-06-18', '2025-11-25']) {
      const raw = await rawSession(at.url, { version });
      const response = await raw.post(toolCall(1, 'steps', { count: 1 }, { progressToken: 't' }));
      assert.match(response.headers.get('content-type'), /text\/event-stream/);
      const all = await Array.fromAsync(events(response.body));
      assert.equal(all.filter((event) => event.data === '').length, version === '2025-11-25' ? 1 : 0, version);
      if (version === '2025-11-25') assert.ok(all[0].data === '' && all[0].id);
      await raw.end();
    }
  });

  it('Last-Event-ID replays what followed, of that stream alone', LIMIT, async () => {
    const raw = await rawSession(at.url);
    const other = raw.exchange(toolCall(2, 'steps', { count: 3 }, { progressToken: 'other' }));
    const all = await Array.fromAsync(raw.exchange(toolCall(1, 'steps', { count: 4 }, { progressToken: 'mine' })));
    await Array.fromAsync(other);
    const missed = all.slice(2);
    const replayed = [];
    for await (const message of messages(await raw.get({ 'last-event-id': all[1].eventId }))) {
      replayed.push(message);
      if (replayed.length === missed.length) break;
    }
    assert.deepEqual(replayed, missed);
    await raw.end();
  });
});

describe('bad input', () => {
  const INIT = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const cases = [
    ['not JSON', '{"jsonrpc":"2.0",', 400],
    ['an empty body', '', 400],
    ['duplicate members', '{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', 400],
    ['invalid UTF-8', Buffer.from('{"jsonrpc":"2.0","id":1,"method":"p\xff"}', 'latin1'), 400],
    ['a batch where none is allowed', '[{"jsonrpc":"2.0","id":1,"method":"ping"}]', 400],
    ['an id of null', '{"jsonrpc":"2.0","id":null,"method":"ping"}', 400],
  ];
  for (const [what, body, status] of cases) {
    it(`${what} is ${status}, and the session does not notice`, LIMIT, async () => {
      const raw = await rawSession(at.url);
      const response = await fetch(at.url, { method: 'POST', headers: { ...INIT, ...raw.headers }, body });
      assert.equal(response.status, status);
      const { result } = await settled(raw.exchange(toolCall(1, 'echo', { text: 'fine' })));
      assert.equal(result.content[0].text, 'fine');
      await raw.end();
    });
  }

  it('a foreign Origin is refused', LIMIT, async () => {
    const response = await fetch(at.url, { method: 'POST', headers: { ...INIT, origin: 'https://evil.example' }, body: '{}' });
    assert.equal(response.status, 403);
  });

  it('an unsupported version header is 400', LIMIT, async () => {
    const raw = await rawSession(at.url);
    const response = await raw.post(toolCall(1, 'echo', { text: 'x' }), { 'mcp-protocol-version': '1900-01-01' });
    assert.equal(response.status, 400);
    await raw.end();
  });

  it('an unknown method is answered with -32601 under its id', LIMIT, async () => {
    const raw = await rawSession(at.url);
    const answer = await settled(raw.exchange({ jsonrpc: '2.0', id: 'u', method: 'no/such' }));
    assert.equal(answer.error.code, -32601);
    assert.equal(answer.id, 'u');
    await raw.end();
  });
});
