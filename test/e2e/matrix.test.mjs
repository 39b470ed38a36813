// {Streamable HTTP, HTTP+SSE, WebSocket, stdio} × {HTTP, stdio upstream} × what a conversation consists of, for every release of
// the client that knows the way in.
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import { agreeable, connect } from './harness/client.mjs';
import { startCutter } from './harness/cutter.mjs';
import { ended, until } from './harness/process.mjs';
import { early, releases } from './harness/releases.mjs';
import { downstreams, serve, upstreams } from './harness/transports.mjs';
import { LIMIT } from './harness/world.mjs';

const clients = { streamable: releases, sse: [early, ...releases], websocket: [early, ...releases], stdio: [early, ...releases] };

for (const out of Object.keys(upstreams)) {
  for (const [way, { listens, make }] of Object.entries(downstreams)) {
    describe(`${way} → bridge → ${out}`, () => {
      const at = { way, out };
      let upstream, bridge;
      let closers = [];
      before(async () => {
        upstream = await upstreams[out]();
        if (listens) bridge = await serve(upstream);
      }, LIMIT);
      after(async () => {
        await bridge?.stop();
        await upstream?.stop();
      }, LIMIT);
      afterEach(async () => {
        const closing = closers.splice(0).reverse();
        for (const close of closing) await close();
      }, LIMIT);

      /** Connects a client. `cutter` stands between it and the bridge when it is given. */
      at.open = async (release, { answers = agreeable, cutter } = {}) => {
        const url = cutter ? bridge.url.replace(String(bridge.port), String(cutter.port)) : bridge?.url;
        const peer = await connect(release, undefined, { answers, transport: () => make(release.name, { ...upstream, url }) });
        closers.push(() => peer.close());
        return { peer, fixture: await upstream.admin() };
      };
      at.cutter = async () => {
        const cutter = await startCutter(bridge.port);
        closers.push(cutter.stop);
        return cutter;
      };

      for (const release of clients[way]) conversation(release, at);
    });
  }
}

function conversation(release, at) {
  const tag = `${release.name}-${Math.random().toString(36).slice(2, 8)}`;
  const test = (name, run, options) => it(`${release.name}: ${name}`, { ...LIMIT, ...options }, run);

  test('plain call', async () => {
    const { peer } = await at.open(release);
    assert.equal(peer.received[0].result.protocolVersion, release.version);
    assert.deepEqual(peer.texts(await peer.call('echo', { text: 'ünïcode' })), ['ünïcode']);
  });

  test('one round', async () => {
    const { peer, fixture } = await at.open(release);
    const { answer } = peer.json(await peer.call('sampling', { prompt: tag }));
    assert.equal(answer.content.text, 'model says hi');
    assert.equal((await fixture.calls('sampling', (c) => c.args.prompt === tag)).length, 2);
  });

  test(
    'three inputs in one round',
    async () => {
      const { peer } = await at.open(release, { answers: { ...agreeable, elicit: () => ({ action: 'accept', content: { who: 'me' } }) } });
      const { answers } = peer.json(await peer.call('three', { label: tag }));
      assert.deepEqual(answers.who, { action: 'accept', content: { who: 'me' } });
      assert.equal(answers.model.content.text, 'model says hi');
      assert.equal(answers.roots.roots[0].uri, 'file:///work');
    },
    { skip: !release.elicits },
  );

  test('cancel', async () => {
    const { peer, fixture } = await at.open(release);
    const abort = new AbortController();
    const call = peer.call('gate', { label: tag }, { signal: abort.signal });
    await running(fixture, tag);
    abort.abort();
    await assert.rejects(call);
    await cancelled(fixture, tag);
    assert.deepEqual(peer.texts(await peer.call('echo', { text: 'on' })), ['on']);
  });

  test('notifications', async () => {
    const { peer, fixture } = await at.open(release);
    await peer.watch('steps', { count: 3 });
    const progress = peer.received.filter((message) => message.method === 'notifications/progress');
    assert.deepEqual(progress.map(({ params }) => params.progress), [1, 2, 3]); // that it came in time, peer.close() checks
    await peer.client.setLoggingLevel('error');
    await peer.call('log');
    await until(() => peer.of('notifications/message').length === 1, 'a log message');
    await peer.client.subscribeResource({ uri: 'memo://counter' });
    await fixture.command('update-counter');
    await until(() => peer.of('notifications/resources/updated').length === 1, 'the update');
    // A stdio fixture cannot tell when the bridge listens, so the change is repeated until it is heard of.
    await until(async () => {
      await fixture.command('add-tool', { name: `new-${tag}` });
      return peer.of('notifications/tools/list_changed').length > 0;
    }, 'tools/list_changed');
  });

  test('the session ends, and so do its calls', async () => {
    const label = `${tag}-end`;
    const { peer, fixture } = await at.open(release);
    const call = peer.call('gate', { label }).catch((error) => error);
    await running(fixture, label);
    await peer.transport.terminateSession?.(); // Streamable HTTP has no connection that stands for the session.
    await peer.client.close();
    assert.ok((await call) instanceof Error);
    if (at.way === 'stdio' && at.out === 'stdio') await ended(fixture.pid, 'the server that the bridge started'); // nobody left to ask
    else await cancelled(fixture, label);
  });

  if (at.way !== 'stdio') drop(release, at, tag, test); // its pipes do not drop, they close
}

// Where the connection is the session, a drop ends it (D-T19). Where it is not, a drop is no cancellation (E-12).
function drop(release, at, tag, test) {
  const label = `${tag}-drop`;
  test('drop', async () => {
    const cutter = await at.cutter();
    const { peer, fixture } = await at.open(release, { cutter });
    const call = peer.watch('gate', { label }).catch((error) => error);
    await running(fixture, label);
    await until(() => peer.received.some((m) => m.method === 'notifications/progress'), 'the first progress');
    cutter.cut();
    if (at.way !== 'streamable') {
      await cancelled(fixture, label);
      return;
    }
    await fixture.command('open', { label });
    await fixture.call('gate', (c) => c.args.label === label && c.outcome === 'completed');
    if (release.resumes === 'itself') assert.deepEqual(peer.texts((await call).result), [`through ${label}`]);
  });
}

const running = (fixture, label) => fixture.call('gate', (c) => c.args.label === label && c.outcome === 'running', 'the call to run');
const cancelled = (fixture, label) => fixture.call('gate', (c) => c.args.label === label && c.outcome === 'cancelled', 'the server to see the end');
