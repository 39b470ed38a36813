// The fixture over stdio, modern only. Its admin address goes to the file named by FIXTURE_ADMIN_FILE, since stdout is the wire.
import { renameSync, writeFileSync } from 'node:fs';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { serveAdmin } from './admin.mjs';
import { Fixture } from './fixture.mjs';

const fixture = new Fixture();
const instances = new Set();
const each = (action) => Promise.all([...instances].map(action));

const admin = await serveAdmin(fixture, {
  toolsChanged: () => each((server) => server.server.sendToolListChanged()),
  promptsChanged: () => each((server) => server.server.sendPromptListChanged()),
  resourcesChanged: () => each((server) => server.server.sendResourceListChanged()),
  resourceUpdated: (uri) => each((server) => server.server.sendResourceUpdated({ uri })),
  dropListens: () => {},
});
admin.server.unref();

serveStdio(
  () => {
    const server = fixture.create();
    instances.add(server);
    server.server.onclose = () => instances.delete(server);
    return server;
  },
  { legacy: 'reject' },
);

const file = process.env.FIXTURE_ADMIN_FILE;
if (file) {
  writeFileSync(`${file}.part`, JSON.stringify({ admin: admin.url, pid: process.pid }));
  renameSync(`${file}.part`, file);
}

// Connections to the admin port would keep the process alive after its wire is gone.
process.stdin.once('end', () => setImmediate(() => process.exit(0)));
