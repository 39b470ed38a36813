// {Streamable HTTP, HTTP+SSE, WebSocket, stdio} × {HTTP, stdio upstream} × what a conversation consists of.
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import { agreeable, connect } from '../harness/client.mjs';
import { until } from '../harness/process.mjs';
import { early, newest, releases } from '../harness/releases.mjs';
import { downstreams, serve, upstreams } from '../harness/transports.mjs';
import { LIMIT } from '../harness/world.mjs';

const oldest = releases[0];
const june = releases.find((r) => r.version === '2025-06-18');
const clients = {
  streamable: [oldest, june, newest],
  sse: [early, oldest, june, newest],
  websocket: [early, june, newest],
  stdio: [early, oldest, june, newest],
};

for (const out of Object.keys(upstreams)) {
  for (const [way, { listens, make }] of Object.entries(downstreams)) {
    describe(`${way} → bridge → ${out}`, () => {
      let upstream, bridge, peers;
      before(async () => {
        upstream = await upstreams[out]();
        if (listens) bridge = await serve(upstream);
      }, LIMIT);
      after(async () => {
        await bridge?.stop();
        await upstream?.stop();
      }, LIMIT);
      afterEach(async () => {
        await Promise.all((peers ?? []).map((peer) => peer.close()));
        peers = [];
      }, LIMIT);

      const open = async (release, answers = agreeable) => {
        const peer = await connect(release, undefined, { answers, transport: () => make(release.name, { ...upstream, url: bridge?.url }) });
        (peers ??= []).push(peer);
        return { peer, fixture: await upstream.admin() };
      };

      for (const release of clients[way]) conversation(release, open);
    });
  }
}

function conversation(release, open) {
  const tag = `${release.name}-${Math.random().toString(36).slice(2, 8)}`;

  it(`${release.name}: plain call`, LIMIT, async () => {
    const { peer } = await open(release);
    assert.equal(peer.received[0].result.protocolVersion, release.version);
    assert.deepEqual(peer.texts(await peer.call('echo', { text: 'ünïcode' })), ['ünïcode']);
  });

  it(`${release.name}: one round`, LIMIT, async () => {
    const { peer, fixture } = await open(release);
    const { answer } = peer.json(await peer.call('sampling', { prompt: tag }));
    assert.equal(answer.content.text, 'model says hi');
    assert.equal((await fixture.calls('sampling', (c) => c.args.prompt === tag)).length, 2);
  });

  it(`${release.name}: three inputs in one round`, { ...LIMIT, skip: !release.elicits }, async () => {
    const { peer } = await open(release, { ...agreeable, elicit: () => ({ action: 'accept', content: { who: 'me' } }) });
    const { answers } = peer.json(await peer.call('three', { label: tag }));
    assert.deepEqual(Object.keys(answers).sort(), ['model', 'roots', 'who']);
  });

  it(`${release.name}: cancel`, LIMIT, async () => {
    const { peer, fixture } = await open(release);
    const abort = new AbortController();
    const call = peer.call('gate', { label: tag }, { signal: abort.signal });
    await fixture.call('gate', (c) => c.args.label === tag && c.outcome === 'running');
    abort.abort();
    await assert.rejects(call);
    await fixture.call('gate', (c) => c.args.label === tag && c.outcome === 'cancelled');
    assert.deepEqual(peer.texts(await peer.call('echo', { text: 'on' })), ['on']);
  });

  it(`${release.name}: the connection ends, and so do its calls`, LIMIT, async () => {
    const label = `${tag}-drop`;
    const { peer, fixture } = await open(release);
    const call = peer.call('gate', { label }).catch((error) => error);
    await fixture.call('gate', (c) => c.args.label === label && c.outcome === 'running');
    await peer.transport.terminateSession?.(); // Streamable HTTP has no connection that stands for the session.
    await peer.client.close();
    assert.ok((await call) instanceof Error);
    await fixture.call('gate', (c) => c.args.label === label && c.outcome === 'cancelled', 'the server to see the end');
  });

  it(`${release.name}: notifications`, LIMIT, async () => {
    const { peer, fixture } = await open(release);
    const { progress } = await peer.watch('steps', { count: 3 });
    assert.deepEqual(progress.map((p) => p.progress), [1, 2, 3]);
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
}
