// A dropped connection is no cancellation: the call goes on, and the client finds its result by Last-Event-ID.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { agreeable } from './harness/client.mjs';
import { until } from './harness/process.mjs';
import { newest, releases } from './harness/releases.mjs';
import { deferred, LIMIT, world } from './harness/world.mjs';

const at = world();

/** A call that gets back to its stream after a drop, the way its release does it. */
function resumable(peer, name, args) {
  let token;
  const progress = [];
  const options = { onprogress: (p) => progress.push(p.progress), onresumptiontoken: (t) => (token = t) };
  const ask = (more) => peer.client.callTool({ name, arguments: args }, undefined, { ...options, ...more });
  const first = ask();
  return {
    progress,
    /** Resolves when the connections are up again; the result comes from `result()`. */
    reconnected: (cutter) => until(() => cutter.connections() > 0, 'the client to connect again'),
    result: () => {
      if (peer.release.resumes === 'itself') return first;
      first.catch(() => {});
      return ask({ resumptionToken: token });
    },
  };
}

for (const release of releases) {
  describe(`${release.name} (${release.version}) resumes`, () => {
    it('a dropped call: the server ran it once and the client got the result', LIMIT, async () => {
      const label = `drop-${release.name}`;
      const { peer, cutter } = await at.connectThroughCutter(release);
      const call = resumable(peer, 'gate', { label });
      await until(() => call.progress.length === 1, 'the first progress');
      cutter.cut();
      await at.fixture.command('open', { label });
      assert.deepEqual(peer.texts(await call.result()), [`through ${label}`]);
      if (release.resumes === 'itself') assert.deepEqual(call.progress, [1, 2], 'what was missed is replayed, once');
      const runs = await at.fixture.calls('gate', (c) => c.args.label === label);
      assert.deepEqual(runs.map((run) => run.outcome), ['completed']);
      assert.equal((await at.fixture.effects())[`gate:${label}`], 1);
    });

    it('a call whose question was asked before the drop', LIMIT, async () => {
      const prompt = `drop-${release.name}`;
      const answer = deferred();
      const { peer, cutter } = await at.connectThroughCutter(release, { answers: { ...agreeable, sample: () => answer.promise } });
      const call = resumable(peer, 'sampling', { prompt });
      await until(() => peer.asked.length === 1, 'the question');
      cutter.cut();
      await call.reconnected(cutter);
      answer.resolve(agreeable.sample());
      assert.equal(peer.json(await call.result()).answer.content.text, 'model says hi');
      assert.equal(peer.asked.length, 1, 'the user is asked once');
      assert.equal((await at.fixture.calls('sampling', (c) => c.args.prompt === prompt)).length, 2);
    });
  });
}

for (const release of releases) {
  describe(`${release.name} (${release.version})`, () => {
    it('a drop is no cancellation (E-12)', LIMIT, async () => {
      const label = `left-${release.name}`;
      const { peer, cutter } = await at.connectThroughCutter(release);
      peer.watch('gate', { label }).catch(() => {});
      await at.fixture.call('gate', (c) => c.args.label === label);
      cutter.cut();
      const other = await at.connect(release);
      await other.call('echo', { text: 'meanwhile' });
      await at.fixture.command('open', { label });
      await at.fixture.call('gate', (c) => c.args.label === label && c.outcome === 'completed');
    });

    it('DELETE ends the session: a running call is cancelled, a later request gets 404', LIMIT, async () => {
      const label = `delete-${release.name}`;
      const peer = await at.connect(release);
      const { sessionId } = peer.transport;
      assert.ok(sessionId);
      const call = peer.call('gate', { label }).catch((error) => error);
      await at.fixture.call('gate', (c) => c.args.label === label);
      await peer.transport.terminateSession();
      await at.fixture.call('gate', (c) => c.args.label === label && c.outcome === 'cancelled', 'the server to see the end of the session');
      const response = await fetch(at.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream', 'mcp-session-id': sessionId },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
      });
      assert.equal(response.status, 404);
      await peer.client.close();
      assert.ok((await call) instanceof Error);
    });
  });
}

it('a call of two rounds survives a drop in each', LIMIT, async () => {
  const label = 'rounds';
  const held = [];
  const answers = { ...agreeable, elicit: () => new Promise((resolve) => held.push(resolve)) };
  const { peer, cutter } = await at.connectThroughCutter(newest, { answers });
  const call = resumable(peer, 'two-rounds', { label });
  for (const content of [{ name: 'Ada' }, { colour: 'red' }]) {
    await until(() => held.length === 1, 'the question');
    cutter.cut();
    await call.reconnected(cutter);
    held.pop()({ action: 'accept', content });
  }
  assert.deepEqual(peer.json(await call.result()), { label, name: 'Ada', colour: 'red', keys: ['colour'] });
  assert.equal(peer.asked.length, 2);
});

it('a dropped standalone stream is opened again and misses nothing', LIMIT, async () => {
  const { peer, cutter } = await at.connectThroughCutter(newest);
  await peer.client.subscribeResource({ uri: 'memo://counter' });
  const updates = () => peer.of('notifications/resources/updated').length;
  await at.fixture.command('update-counter');
  await until(() => updates() === 1, 'the first update');
  cutter.cut();
  await at.fixture.command('update-counter');
  await until(() => updates() === 2, 'the update during the drop');
});
