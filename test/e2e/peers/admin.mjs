// The fixture's second port: tests read the record and change the server's surface here, never over MCP.
import { createServer } from 'node:http';

/** Serves GET /record and POST /command for a fixture. `hooks` carries what the transport at hand can do. */
export async function serveAdmin(fixture, hooks) {
  const server = createServer(async (req, res) => {
    try {
      const result = req.method === 'GET' ? fixture.record.snapshot() : await command(fixture, hooks, JSON.parse(await body(req)));
      res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(result ?? {}));
    } catch (error) {
      res.writeHead(500).end(String(error?.stack ?? error));
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { url: `http://127.0.0.1:${server.address().port}`, server };
}

async function command(fixture, hooks, { op, ...args }) {
  const { record, surface } = fixture;
  const commands = {
    open: () => record.gate(args.label).open(),
    'add-tool': () => {
      surface.extraTools.add(args.name);
      return hooks.toolsChanged();
    },
    'remove-tool': () => {
      surface.extraTools.delete(args.name);
      return hooks.toolsChanged();
    },
    'touch-prompts': () => hooks.promptsChanged(),
    'touch-resources': () => hooks.resourcesChanged(),
    'update-counter': () => {
      surface.counter++;
      return hooks.resourceUpdated('memo://counter');
    },
    update: () => hooks.resourceUpdated(args.uri),
    'require-token': () => {
      surface.requireToken = args.token;
    },
    'drop-listens': () => hooks.dropListens(),
  };
  if (!commands[op]) throw new Error(`unknown command ${op}`);
  return commands[op]();
}

export async function body(req) {
  const chunks = [];
  for await (const chunk of req) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}
