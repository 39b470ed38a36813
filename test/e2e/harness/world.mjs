// Fixture and bridge of one test file: started before its tests, ended after them, whatever happened between.
import { after, afterEach, before } from 'node:test';
import { startBridge } from './bridge.mjs';
import { connect } from './client.mjs';
import { startCutter } from './cutter.mjs';
import { startFixture } from './fixture.mjs';

export const LIMIT = { timeout: 30_000 };

/** Call at the top of a file or suite. The returned object is filled in before the first test runs. */
export function world(options = {}) {
  const at = { clients: [], closers: [] };

  before(async () => {
    at.fixture = await startFixture({ env: options.fixtureEnv });
    at.bridge = await startBridge(at.fixture.url, options);
    at.url = at.bridge.url;
  }, LIMIT);

  afterEach(async () => {
    const clients = at.clients.splice(0);
    const closers = at.closers.splice(0);
    const ends = [...(await Promise.allSettled(clients.map((peer) => peer.close()))), ...(await Promise.allSettled(closers.map((close) => close())))];
    const failed = ends.find((end) => end.status === 'rejected');
    if (failed) throw failed.reason;
  });

  after(async () => {
    try {
      await at.bridge?.stop();
    } finally {
      await at.fixture?.stop();
      if (process.env.E2E_LOG && at.bridge) process.stderr.write(at.bridge.log());
    }
  }, LIMIT);

  /** Connects a client that is closed (and checked) after the test. */
  at.connect = async (release, connectOptions) => {
    const peer = await connect(release, at.url, connectOptions);
    at.clients.push(peer);
    return peer;
  };
  /** Connects a client through a relay that can cut its connections. */
  at.connectThroughCutter = async (release, connectOptions) => {
    const cutter = await startCutter(at.bridge.port);
    at.closers.push(cutter.stop);
    const url = at.url.replace(String(at.bridge.port), String(cutter.port));
    const peer = await connect(release, url, connectOptions);
    at.clients.push(peer);
    return { peer, cutter };
  };
  return at;
}

/** A promise with its resolver, for tests that decide when a user answers. */
export function deferred() {
  let resolve;
  const promise = new Promise((r) => (resolve = r));
  return { promise, resolve };
}
