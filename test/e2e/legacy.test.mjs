// Servers that speak older revisions only: their clients are relayed to them unchanged, over whichever transports.
import assert from 'node:assert/strict';
import { after, afterEach, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { connect } from './harness/client.mjs';
import { ended, firstLine, start, stop, until } from './harness/process.mjs';
import { early, releases } from './harness/releases.mjs';
import { downstreams, serve } from './harness/transports.mjs';
import { LIMIT } from './harness/world.mjs';

const SERVER = fileURLToPath(new URL('./peers/legacy.mjs', import.meta.url));
const clients = { streamable: releases, sse: [early, ...releases], websocket: [early, ...releases], stdio: [early, ...releases] };

const listening = async (kind) => {
  const handle = start(process.execPath, [SERVER, kind]);
  const { url } = await firstLine(handle);
  const sessions = async () => Number(await (await fetch(new URL('/sessions', url))).text());
  return { url, target: ['--upstream', url], env: {}, sessions, stop: () => stop(handle) };
};

const servers = {
  http: () => listening('http'),
  sse: () => listening('sse'),
  async stdio() {
    return { target: ['--', process.execPath, SERVER, 'stdio'], env: {}, stop: () => {} };
  },
};

for (const out of Object.keys(servers)) {
  for (const [way, { listens, make }] of Object.entries(downstreams)) {
    describe(`${way} → bridge → legacy server over ${out}`, () => {
      let upstream, bridge, peer;
      before(async () => {
        upstream = await servers[out]();
        if (listens) bridge = await serve(upstream);
      }, LIMIT);
      after(async () => {
        await bridge?.stop();
        await upstream?.stop();
      }, LIMIT);
      afterEach(() => peer?.client.close(), LIMIT);

      for (const release of clients[way]) {
        it(`${release.name}: a whole conversation`, LIMIT, async () => {
          peer = await connect(release, undefined, { transport: () => make(release.name, { ...upstream, url: bridge?.url }) });
          assert.equal(peer.received[0].result.protocolVersion, release.version);
          assert.deepEqual(peer.received[0].result.serverInfo, { name: 'old', version: '1' });
          assert.deepEqual(peer.texts(await peer.call('echo', { text: 'ünïcode' })), ['ünïcode']);
          assert.deepEqual(peer.texts(await peer.call('sampling', { prompt: 'hi' })), ['model says hi']);
          await peer.watch('steps', { count: 3 });
          const progress = peer.received.filter((message) => message.method === 'notifications/progress');
          assert.deepEqual(progress.map(({ params }) => params.progress), [1, 2, 3]);
          await peer.call('grow');
          await until(() => peer.of('notifications/tools/list_changed').length > 0, 'tools/list_changed');

          const abort = new AbortController();
          const call = peer.watch('gate', { label: release.name }, { signal: abort.signal });
          await until(() => peer.received.filter(({ method }) => method === 'notifications/progress').length === 4, 'the call to run');
          abort.abort();
          await assert.rejects(call);
          await until(async () => peer.texts(await peer.call('cancelled'))[0] === release.name, 'the server to see the cancellation');

          const pid = Number(peer.texts(await peer.call('pid'))[0]);
          await peer.close();
          if (out === 'stdio') await ended(pid, 'the process of the session');
          else await until(async () => (await upstream.sessions()) === 0, 'the session to end');
        });
      }
    });
  }
}
