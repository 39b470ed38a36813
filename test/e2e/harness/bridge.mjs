// Builds the bridge once per process (or takes E2E_BRIDGE) and runs it in front of an upstream.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { freePort, start, stop, until } from './process.mjs';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

let built;

/** The path of the bridge's binary. Without E2E_BRIDGE it is built into a directory that is removed at exit. */
export function bridgeBinary() {
  if (process.env.E2E_BRIDGE) return Promise.resolve(process.env.E2E_BRIDGE);
  built ??= build();
  return built;
}

export async function build() {
  const dir = mkdtempSync(join(tmpdir(), 'bridge-e2e-'));
  process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
  const binary = join(dir, 'bridge');
  await promisify(execFile)('go', ['build', '-o', binary, './cmd/bridge'], { cwd: ROOT });
  return binary;
}

/** Starts `bridge serve` in front of an upstream URL and resolves once its port accepts connections. */
export async function startBridge(upstream, { flags = [], path = '/mcp', env = {} } = {}) {
  const port = await freePort();
  const args = ['serve', ...(upstream ? ['--upstream', upstream] : []), '--listen', `127.0.0.1:${port}`, '--path', path, ...flags];
  const handle = start(await bridgeBinary(), args, { env: { ...process.env, ...env } });
  handle.child.stdout.resume();
  let ended;
  void handle.exited.then((result) => (ended = result));
  await until(
    async () => {
      if (ended) throw new Error(`bridge exited with ${ended.code}: ${handle.log}`);
      return accepts(port);
    },
    'the bridge to listen',
    20_000,
  );
  const base = `http://127.0.0.1:${port}`;
  return { url: `${base}${path}`, base, port, pid: handle.child.pid, log: () => handle.log, stop: () => end(handle), handle };
}

// The bridge must stop when asked to, with nothing to complain about: with a race-enabled binary this reports races too.
async function end(handle) {
  const { code, signal } = await stop(handle, 10_000);
  if (code !== 0) throw new Error(`bridge ended with ${signal ?? code}: ${handle.log}`);
  if (/DATA RACE|panic:/.test(handle.log)) throw new Error(handle.log);
}

function accepts(port) {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}
