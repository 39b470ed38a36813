// Bursts of calls at the very distance at which the server gives idle connections up: none is lost, none is executed twice.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as after } from 'node:timers/promises';
import { releases } from './harness/releases.mjs';
import { world } from './harness/world.mjs';

const TIMEOUT = 1000; // ms; the server announces it
const BURST = 8;
const DISTANCES = [-60, -20, -5, 0, 2, 5, 20, 60]; // ms beside the timeout

describe('a server that keeps connections for a second', () => {
  const at = world({ fixtureEnv: { FIXTURE_KEEP_ALIVE: String(TIMEOUT) } });

  it('answers every call of bursts at that distance once, to clients of every release', { timeout: 60_000 }, async () => {
    const peers = await Promise.all(releases.map((release) => at.connect(release)));
    const asked = [];
    for (const distance of [0, ...DISTANCES]) {
      await after(TIMEOUT + distance);
      const texts = peers.flatMap((peer) => Array.from({ length: BURST }, (_, n) => [peer, `${peer.release.name} ${asked.length} ${n}`]));
      const results = await Promise.all(texts.map(([peer, text]) => peer.call('echo', { text })));
      assert.deepEqual(results.map((result, n) => texts[n][0].texts(result)[0]), texts.map(([, text]) => text));
      asked.push(...texts.map(([, text]) => text));
    }
    const executed = (await at.fixture.calls('echo')).map((call) => call.args.text);
    assert.deepEqual(executed.sort(), asked.sort());
  });
});
