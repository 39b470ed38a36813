// Every release of the official client × every way in: what each is connected for, and bursts of calls at once at the very distance at
// which the server gives idle connections up.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { agreeable, connect } from './harness/client.mjs';
import { startFixture } from './harness/fixture.mjs';
import { every } from './harness/releases.mjs';
import { downstreams, serve } from './harness/transports.mjs';

const TIMEOUT = 1000; // ms; the server announces it
const DISTANCES = [-20, 0, 5, 60]; // ms beside the timeout
const BURST = 20;
const LIMIT = { timeout: 60_000 };

const answers = { ...agreeable, elicit: () => ({ action: 'accept', content: { who: 'me' } }) };

describe('every release', { concurrency: 2 }, () => {
  for (const [way, { listens, make }] of Object.entries(downstreams)) {
    const clients = every.filter((release) => way !== 'streamable' || !release.early);
    describe(`${clients.length} releases over ${way}`, () => {
      let fixture, bridge, peers;
      before(async () => {
        fixture = await startFixture({ env: { FIXTURE_KEEP_ALIVE: String(TIMEOUT) } });
        const upstream = { url: fixture.url, target: ['--upstream', fixture.url], env: {} };
        if (listens) bridge = await serve(upstream);
        peers = await Promise.all(clients.map((release) => connect(release, undefined, { answers, transport: () => make(release.name, { ...upstream, url: bridge?.url }) })));
      }, LIMIT);
      after(async () => {
        await Promise.all((peers ?? []).map((peer) => peer.close()));
        await bridge?.stop();
        await fixture?.stop();
      }, LIMIT);

      for (const [n, release] of clients.entries()) {
        it(`${release.name}: calls, questions, progress, cancellation`, LIMIT, () => converse(peers[n], fixture, `${way} ${release.name}`));
      }

      it('each call of a burst is answered, and executed once', LIMIT, async () => {
        const asked = [];
        for (const distance of [0, ...DISTANCES]) {
          await pause(TIMEOUT + distance);
          const texts = peers.flatMap((peer) => Array.from({ length: BURST }, (_, n) => [peer, `${peer.release.name} ${asked.length} ${n}`]));
          const results = await Promise.all(texts.map(([peer, text]) => peer.call('echo', { text })));
          assert.deepEqual(results.map((result, n) => texts[n][0].texts(result)[0]), texts.map(([, text]) => text));
          asked.push(...texts.map(([, text]) => text));
        }
        const executed = (await fixture.calls('echo')).map((call) => call.args.text).filter((text) => !text.startsWith('plain'));
        assert.deepEqual(executed.sort(), asked.sort());
      });
    });
  }
});

async function converse(peer, fixture, tag) {
  const { release } = peer;
  assert.equal(peer.received[0].result.protocolVersion, release.version);
  assert.deepEqual(peer.texts(await peer.call('echo', { text: `plain ${tag}` })), [`plain ${tag}`]);
  assert.equal(peer.json(await peer.call('sampling', { prompt: tag })).answer.content.text, 'model says hi');
  if (release.elicits) {
    const { answers } = peer.json(await peer.call('three', { label: tag }));
    assert.deepEqual(answers.who, { action: 'accept', content: { who: 'me' } });
    assert.equal(answers.roots.roots[0].uri, 'file:///work');
  }
  await peer.watch('steps', { count: 3 });
  const progress = peer.received.filter((message) => message.method === 'notifications/progress');
  assert.deepEqual(progress.map(({ params }) => params.progress), [1, 2, 3]);
  const abort = new AbortController();
  const call = peer.call('gate', { label: tag }, { signal: abort.signal });
  await fixture.call('gate', (c) => c.args.label === tag && c.outcome === 'running', 'the call to run');
  abort.abort();
  await assert.rejects(call);
  await fixture.call('gate', (c) => c.args.label === tag && c.outcome === 'cancelled', 'the server to see the end');
}
