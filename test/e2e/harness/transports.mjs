// The ways into the bridge and out of it, each as something a test can connect.
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bridgeBinary, startBridge } from './bridge.mjs';
import { adminOf, startFixture } from './fixture.mjs';
import { until } from './process.mjs';

const STDIO_FIXTURE = fileURLToPath(new URL('../peers/stdio.mjs', import.meta.url));

/** Upstreams: `target` is what follows the bridge's flags, `env` what it needs, `admin()` how to look into the fixture. */
export const upstreams = {
  async http() {
    const fixture = await startFixture();
    return { url: fixture.url, target: ['--upstream', fixture.url], env: {}, admin: async () => fixture, stop: fixture.stop };
  },
  async stdio() {
    const dir = mkdtempSync(join(tmpdir(), 'bridge-stdio-'));
    const file = join(dir, 'admin.json');
    return {
      target: ['--', process.execPath, STDIO_FIXTURE],
      serveFlags: ['--command-env', 'FIXTURE_*'], // bridge stdio hands its environment on
      env: { FIXTURE_ADMIN_FILE: file },
      /** Known once the bridge has started the child. */
      admin: async () => {
        await until(() => existsSync(file), 'the stdio fixture to start');
        const read = () => JSON.parse(readFileSync(file, 'utf8'));
        return { ...adminOf(() => read().admin), pid: read().pid };
      },
      stop: async () => rmSync(dir, { recursive: true, force: true }),
    };
  },
};

/** Starts `bridge serve` in front of an upstream of the table above. */
export const serve = (upstream, { flags = [] } = {}) =>
  upstream.url ? startBridge(upstream.url, { flags, env: upstream.env }) : startBridge(undefined, { flags: [...flags, ...(upstream.serveFlags ?? []), ...upstream.target], env: upstream.env });

const load = (release, module) => import(`${release}/client/${module}.js`);

/** Downstream transports: make(release name, where) returns an SDK transport to the bridge at `where.url`, or one that starts the
 * bridge for `where.target`. `listens`: needs `bridge serve`. */
export const downstreams = {
  streamable: {
    listens: true,
    async make(release, { url }) {
      const { StreamableHTTPClientTransport } = await load(release, 'streamableHttp');
      return new StreamableHTTPClientTransport(new URL(url));
    },
  },
  sse: {
    listens: true,
    async make(release, { url }) {
      globalThis.EventSource ??= (await import('eventsource')).EventSource; // 1.0 takes the global one
      const { SSEClientTransport } = await load(release, 'sse');
      return new SSEClientTransport(new URL('/sse', url));
    },
  },
  websocket: {
    listens: true,
    async make(release, { url }) {
      const { WebSocket } = await import('ws');
      globalThis.WebSocket ??= WebSocket; // Node 20 has none; the SDK takes the global one.
      const { WebSocketClientTransport } = await load(release, 'websocket');
      return new WebSocketClientTransport(new URL(url.replace(/^http/, 'ws')));
    },
  },
  stdio: {
    listens: false,
    async make(release, { target, env }) {
      const { StdioClientTransport } = await load(release, 'stdio');
      return new StdioClientTransport({
        command: await bridgeBinary(),
        args: ['stdio', ...target],
        env: { ...process.env, ...env },
        stderr: 'ignore',
      });
    },
  },
};
