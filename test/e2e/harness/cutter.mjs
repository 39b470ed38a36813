// A TCP relay that can cut every connection, as a network drop does.
import { connect, createServer } from 'node:net';

export async function startCutter(port) {
  const pairs = new Set();
  const server = createServer((near) => {
    const far = connect(port, '127.0.0.1');
    const pair = { near, far };
    pairs.add(pair);
    for (const [from, to] of [[near, far], [far, near]]) {
      from.on('error', () => {});
      from.on('close', () => {
        to.destroy();
        pairs.delete(pair);
      });
      from.pipe(to);
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: server.address().port,
    connections: () => pairs.size,
    /** Resets all connections that are open now; new ones are relayed again. */
    cut() {
      for (const { near, far } of pairs) {
        near.resetAndDestroy();
        far.resetAndDestroy();
      }
      pairs.clear();
    },
    stop: () => new Promise((resolve) => {
      for (const { near, far } of pairs) [near, far].forEach((socket) => socket.destroy());
      server.close(resolve);
    }),
  };
}
