// Child processes with strict limits: started, watched, and always ended.
import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { createInterface } from 'node:readline';

const LOG_LIMIT = 64 * 1024;

/** Starts a command; its stderr is kept (bounded) for the message of a failing test. */
export function start(command, args, options = {}) {
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'pipe'], ...options });
  const handle = { child, log: '', exited: undefined };
  const keep = (chunk) => (handle.log = (handle.log + chunk).slice(-LOG_LIMIT));
  child.stderr.setEncoding('utf8').on('data', keep);
  child.stdin.on('error', () => {});
  handle.exited = new Promise((resolve) => {
    child.on('exit', (code, signal) => resolve({ code, signal }));
    child.on('error', (error) => {
      keep(String(error));
      resolve({ code: -1, signal: null });
    });
  });
  return handle;
}

/** Ends a child: closes its stdin, asks by SIGTERM, and kills it when it does not listen. */
export async function stop(handle, graceMs = 3000) {
  const { child, exited } = handle;
  if (child.exitCode !== null || child.signalCode !== null) return exited;
  child.stdin.end();
  child.kill('SIGTERM');
  const killer = setTimeout(() => child.kill('SIGKILL'), graceMs);
  const result = await exited;
  clearTimeout(killer);
  return result;
}

/** The first line of a child's stdout, parsed as JSON. Fails when the child ends first or says nothing in time. */
export async function firstLine(handle, timeoutMs = 15_000) {
  const lines = createInterface({ input: handle.child.stdout });
  try {
    return await withTimeout(
      new Promise((resolve, reject) => {
        lines.once('line', (line) => resolve(JSON.parse(line)));
        handle.exited.then(({ code }) => reject(new Error(`exited with ${code}: ${handle.log}`)));
      }),
      timeoutMs,
      'the first line of a child process',
    );
  } finally {
    lines.close();
    handle.child.stdout.resume();
  }
}

export function withTimeout(promise, ms, what) {
  let timer;
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error(`timed out waiting for ${what}`)), ms)));
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** Polls until `probe` returns something truthy. What is waited for is named in the failure. */
export async function until(probe, what, timeoutMs = 10_000) {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const value = await probe();
    if (value) return value;
    if (Date.now() > deadline) throw new Error(`timed out waiting for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

/** Waits until no process has this id any more. */
export const ended = (pid, what) =>
  until(() => {
    try {
      process.kill(pid, 0);
      return false;
    } catch {
      return true;
    }
  }, `the end of ${what}`);

let nextPort = Math.floor(Math.random() * 10000);

/**
 * A port on which nobody listens, of those that systems hand out to no connection and to no
 * listener on port 0: nobody takes it before it is used.
 */
export async function freePort() {
  for (;;) {
    const port = 10000 + (nextPort++ % 10000);
    if (port === 10080) continue; // which fetch and browsers use for no connection
    const probe = createServer();
    const free = await new Promise((resolve) => probe.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true)));
    if (!free) continue;
    await new Promise((resolve) => probe.close(resolve));
    return port;
  }
}
