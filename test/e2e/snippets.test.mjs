// The snippets for desktop clients, done as written: the SDK launches what they name and talks to a server through it.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { bridgeBinary, startBridge } from './harness/bridge.mjs';
import { connect } from './harness/client.mjs';
import { newest } from './harness/releases.mjs';
import { upstreams } from './harness/transports.mjs';
import { LIMIT } from './harness/world.mjs';

const read = (name) => JSON.parse(readFileSync(fileURLToPath(new URL(`../../deploy/clients/${name}.json`, import.meta.url)), 'utf8'));
const TOKEN = 'of-the-user';

for (const name of ['claude-desktop', 'claude-code', 'cursor', 'vscode']) {
  const snippet = read(name);
  describe(`the snippet for ${name}`, () => {
    let remote, local, bridge, peer;
    before(async () => {
      [remote, local] = [await upstreams.http(), await upstreams.stdio()];
      bridge = await startBridge(remote.url);
    }, LIMIT);
    afterEach(() => peer?.close(), LIMIT);
    after(async () => {
      await bridge.stop();
      await Promise.all([remote.stop(), local.stop()]);
    }, LIMIT);

    for (const [title, server] of Object.entries(snippet.mcpServers ?? snippet.servers)) {
      it(title, LIMIT, async () => {
        peer = await connect(newest, undefined, { transport: () => (server.url ? reach(server) : launch(server)) });
        const { answer } = peer.json(await peer.call('sampling', { prompt: title }));
        assert.equal(answer.content.text, 'model says hi');
        if (!server.env) return;
        const { requests } = await (await remote.admin()).record();
        assert.ok(requests.some(({ headers }) => headers.authorization === `Bearer ${TOKEN}`), 'the token reaches the server');
      });
    }

    /** A URL is that of a bridge that runs already; the test's listens elsewhere. */
    async function reach({ url }) {
      assert.equal(url, 'http://127.0.0.1:8080/mcp');
      const { StreamableHTTPClientTransport } = await newest.load();
      return new StreamableHTTPClientTransport(new URL(bridge.url));
    }

    async function launch({ command, args, env }) {
      assert.equal(basename(command), 'bridge');
      const { StdioClientTransport } = await import(`${newest.name}/client/stdio.js`);
      return new StdioClientTransport({
        command: await bridgeBinary(),
        args: args.flatMap((arg) => {
          if (arg === 'https://mcp.example.com/mcp') return [remote.url];
          if (basename(arg) === 'my-mcp-server') return local.target.slice(1);
          return [arg];
        }),
        env: { ...process.env, ...local.env, ...substituted(env) },
        stderr: 'ignore',
      });
    }
  });
}

/** The environment with the user's token where the client puts it. */
const substituted = (env = {}) => Object.fromEntries(Object.entries(env).map(([key, value]) => [key, value.replace(/YOUR-TOKEN|\$\{[^}]*\}/g, TOKEN)]));
