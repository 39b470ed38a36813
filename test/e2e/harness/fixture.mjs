// The upstream of the tests and the way to look into it.
import { fileURLToPath } from 'node:url';
import { firstLine, start, stop, until } from './process.mjs';

const SERVER = fileURLToPath(new URL('../peers/server.mjs', import.meta.url));

/** Starts the fixture on a free port, or on the one that is asked for. */
export async function startFixture({ port, env = {} } = {}) {
  const handle = start(process.execPath, [SERVER, ...(port ? [String(port)] : [])], { env: { ...process.env, ...env } });
  const { url, admin } = await firstLine(handle);
  return { ...adminOf(() => admin), url, stop: () => stop(handle), log: () => handle.log };
}

/** The admin side of any fixture. `address` is asked each time: a stdio fixture that was started again has another. */
export function adminOf(address) {
  const record = async () => (await fetch(`${address()}/record`)).json();
  const calls = async (name, match = () => true) => (await record()).calls.filter((call) => call.name === name && match(call));
  return {
    record,
    calls,
    effects: async () => (await record()).effects,
    /** Runs an admin command: open, add-tool, update-counter, require-token, drop-listens, … */
    async command(op, args = {}) {
      const response = await fetch(`${address()}/command`, { method: 'POST', body: JSON.stringify({ op, ...args }) });
      if (!response.ok) throw new Error(`${op}: ${await response.text()}`);
    },
    /** Waits until a run of the handler satisfies `match` and returns it. */
    call: (name, match, what = `a call of ${name}`) => until(async () => (await calls(name, match)).at(-1), what),
    /** Waits until an acknowledged subscriptions/listen that is still open satisfies `match`. */
    listening: (match, what = 'an open listen') =>
      until(async () => {
        const { requests } = await record();
        return requests.find((r) => r.rpc === 'subscriptions/listen' && r.status === 200 && !r.closed && match(r.params));
      }, what),
  };
}
