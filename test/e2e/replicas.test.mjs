// A rolling restart of all replicas behind nginx, without affinity: the SDK's client notices nothing. It is used as it comes, with
// its own patience.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { agreeable, connect } from './harness/client.mjs';
import { startFixture } from './harness/fixture.mjs';
import { until } from './harness/process.mjs';
import { newest, releases } from './harness/releases.mjs';
import { missing, startReplicas } from './harness/replicas.mjs';
import { deferred } from './harness/world.mjs';

const LIMIT = { timeout: 120_000 };
const at = {};

async function untouched(release, options) {
  const { StreamableHTTPClientTransport } = await release.load();
  return connect(release, at.replicas.url, { ...options, transport: () => new StreamableHTTPClientTransport(new URL(at.replicas.url)) });
}

describe('a rolling restart of three replicas', { skip: missing() ?? false }, () => {
  before(async () => {
    at.fixture = await startFixture();
    at.replicas = await startReplicas(at.fixture.url);
  }, LIMIT);

  after(async () => {
    await at.replicas?.stop();
    await at.fixture?.stop();
  }, LIMIT);

  it('every release goes on calling in its session', LIMIT, async () => {
    const peers = await Promise.all(releases.map((release) => untouched(release)));
    const sessions = peers.map((peer) => peer.transport.sessionId);
    let over = false;
    const calling = peers.map(async (peer) => {
      let calls = 0;
      for (; !over || calls < 20; calls++) {
        const said = `${peer.release.name} ${calls}`;
        assert.deepEqual(peer.texts(await peer.call('echo', { text: said })), [said]);
      }
      return calls;
    });
    await Promise.race([at.replicas.restart(), ...calling]);
    over = true;
    const calls = await Promise.all(calling);
    assert.deepEqual(peers.map((peer) => peer.transport.sessionId), sessions); // prettier-ignore
    console.log(`calls while all replicas were restarted: ${calls.join(', ')}`);
    for (const peer of peers) await peer.close();
  });

  it('a person who is asked before it answers after it, twice', LIMIT, async () => {
    const answers = [deferred(), deferred()];
    let asked = 0;
    const peer = await untouched(newest, { answers: { ...agreeable, elicit: () => answers[asked++].promise } });
    const call = peer.call('two-rounds', { label: 'rolling' }, { timeout: 100_000 });
    await until(() => asked === 1, 'the first question');
    await at.replicas.restart();
    answers[0].resolve({ action: 'accept', content: { name: 'Ada' } });
    await until(() => asked === 2, 'the second question', 30_000);
    answers[1].resolve({ action: 'accept', content: { colour: 'red' } });
    assert.deepEqual(peer.json(await call), { label: 'rolling', name: 'Ada', colour: 'red', keys: ['colour'] });
    assert.equal((await at.fixture.effects())['two-rounds:rolling'], 1, 'it ran once');
    assert.equal(peer.asked.length, 2, 'nothing was asked twice');
    await peer.close();
  });

  it('updates of a resource reach who subscribed before it', LIMIT, async () => {
    const peer = await untouched(newest);
    await peer.client.subscribeResource({ uri: 'memo://counter' });
    const updates = () => peer.of('notifications/resources/updated').length;
    // The stream of the client may be at another replica than its subscription, which hears of that a moment later.
    const updated = (what) => {
      const before = updates();
      return until(async () => {
        await at.fixture.command('update-counter');
        return updates() > before;
      }, what, 30_000); // prettier-ignore
    };
    await updated('an update');
    await at.replicas.restart();
    await updated('an update after the restart');
    await peer.close();
  });
});
