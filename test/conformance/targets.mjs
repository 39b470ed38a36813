// The servers that suites are run against, each started when the first suite wants it.
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { startBridge } from '../e2e/harness/bridge.mjs';
import { firstLine, freePort, start, stop, until } from '../e2e/harness/process.mjs';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const GO_SERVER = 'github.com/modelcontextprotocol/go-sdk/conformance/everything-server';

export class Targets {
  #started = new Map();
  #stops = [];

  /** The URL of a target: `fixture`, `go`, or the bridge in front of one of them. */
  url(name) {
    if (!this.#started.has(name)) this.#started.set(name, this.#start[name]());
    return this.#started.get(name);
  }

  async stop() {
    for (const stopOne of this.#stops.reverse()) await stopOne();
  }

  #start = {
    fixture: async () => {
      const fixture = start(process.execPath, [join(import.meta.dirname, 'peers/server.mjs')]);
      this.#stops.push(() => stop(fixture));
      return (await firstLine(fixture)).url;
    },
    go: async () => {
      const address = `127.0.0.1:${await freePort()}`;
      const server = start(await this.#goServer(), ['-stateless', '-http', address]);
      this.#stops.push(() => stop(server));
      await until(() => answers(`http://${address}/`), 'the Go server to listen');
      return `http://${address}/`;
    },
    bridge: async () => this.#front(await this.url('fixture')),
    'bridge-polling': async () => this.#front(await this.url('fixture'), ['--timeouts.poll', '2500ms']),
    // These answer legacy clients, too: over HTTP the bridge could hand them on, so it is told to translate.
    'bridge-go': async () => this.#front(await this.url('go'), ['--legacy-relay', 'never']),
    'bridge-go-stdio': async () => this.#front(undefined, ['--', await this.#goServer()]),
  };

  async #front(upstream, flags) {
    const bridge = await startBridge(upstream, { flags });
    this.#stops.push(bridge.stop);
    return bridge.url;
  }

  /** The Go SDK's own server for the suites, built from the module that go.mod names. */
  #goServer() {
    this.#built ??= (async () => {
      const dir = mkdtempSync(join(tmpdir(), 'bridge-conformance-go-'));
      this.#stops.push(() => rmSync(dir, { recursive: true, force: true }));
      await promisify(execFile)('go', ['build', '-o', join(dir, 'everything-server'), GO_SERVER], { cwd: ROOT });
      return join(dir, 'everything-server');
    })();
    return this.#built;
  }
  #built;
}

const answers = (url) =>
  fetch(url).then(
    (response) => response.arrayBuffer().then(() => true),
    () => false,
  );
