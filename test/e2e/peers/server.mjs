// The fixture over HTTP: a modern-only server that refuses legacy traffic. Prints one JSON line with its two addresses.
import { createServer } from 'node:http';
import { createMcpHandler } from '@modelcontextprotocol/server';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { body, serveAdmin } from './admin.mjs';
import { Fixture } from './fixture.mjs';

const fixture = new Fixture();
const handler = createMcpHandler(fixture.create, { legacy: 'reject', keepAliveMs: 0 });
const serve = toNodeHandler(handler);
const listens = new Set();

async function handle(req, res) {
  const raw = await body(req);
  const message = parse(raw);
  const entry = fixture.record.request({
    method: req.method,
    url: req.url,
    headers: req.headers,
    rpc: message?.method ?? null,
    id: message?.id ?? null,
    params: message?.params ?? null,
  });
  const writeHead = res.writeHead;
  res.writeHead = (status, ...rest) => {
    entry.status = status;
    return writeHead.call(res, status, ...rest);
  };
  res.on('close', () => {
    entry.closed = true;
    entry.closedEarly = !res.writableEnded;
    listens.delete(res);
  });
  const { requireToken } = fixture.surface;
  if (requireToken !== undefined && req.headers.authorization !== `Bearer ${requireToken}`) {
    const challenge = 'Bearer resource_metadata="http://127.0.0.1/.well-known/oauth-protected-resource", scope="tools:call"';
    res.writeHead(401, { 'www-authenticate': challenge }).end();
    return;
  }
  if (message?.method === 'subscriptions/listen') listens.add(res);
  await serve(req, res, message ?? raw);
}

function parse(raw) {
  try {
    return JSON.parse(raw);
  } catch {
    return undefined;
  }
}

const http = createServer((req, res) => void handle(req, res));
if (process.env.FIXTURE_KEEP_ALIVE) {
  http.keepAliveTimeout = Number(process.env.FIXTURE_KEEP_ALIVE); // announced in whole seconds
  http.keepAliveTimeoutBuffer = 0; // and kept to: newer releases of Node wait for another second
}
await new Promise((resolve) => http.listen(Number(process.argv[2] ?? 0), '127.0.0.1', resolve));
const admin = await serveAdmin(fixture, {
  toolsChanged: () => handler.notify.toolsChanged(),
  promptsChanged: () => handler.notify.promptsChanged(),
  resourcesChanged: () => handler.notify.resourcesChanged(),
  resourceUpdated: (uri) => handler.notify.resourceUpdated(uri),
  dropListens: () => listens.forEach((res) => res.destroy()),
});
process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${http.address().port}/mcp`, admin: admin.url })}\n`);
// A fixture must not outlive the test that started it, not even when that was killed.
process.stdin.on('end', () => process.exit(0)).resume();
