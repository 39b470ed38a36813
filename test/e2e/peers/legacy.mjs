// A legacy server on release 1.32 of the SDK: `node legacy.mjs stdio`, or `node legacy.mjs http` or `sse`, which print their URL. It
// speaks no modern revision, and as a process it has one client. With sse it is reached only over HTTP+SSE, by the transport of
// release 1.4.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { SSEServerTransport } from 'sdk-2024-11-early/server/sse.js';
import { Server } from 'sdk-2025-11/server/index.js';
import { StdioServerTransport } from 'sdk-2025-11/server/stdio.js';
import { StreamableHTTPServerTransport } from 'sdk-2025-11/server/streamableHttp.js';
import { CallToolRequestSchema, ListToolsRequestSchema } from 'sdk-2025-11/types.js';
import { body } from './admin.mjs';

const text = (value) => ({ content: [{ type: 'text', text: value }] });

const tools = {
  echo: (_server, args) => text(args.text),
  pid: () => text(String(process.pid)),
  async sampling(server, args, extra) {
    const messages = [{ role: 'user', content: { type: 'text', text: args.prompt } }];
    const request = { method: 'sampling/createMessage', params: { messages, maxTokens: 5 } };
    const { CreateMessageResultSchema } = await import('sdk-2025-11/types.js');
    return text((await extra.sendRequest(request, CreateMessageResultSchema)).content.text);
  },
  async steps(_server, { count }, { _meta, sendNotification }) {
    for (let progress = 1; progress <= count; progress++) {
      await sendNotification({ method: 'notifications/progress', params: { progressToken: _meta.progressToken, progress } });
    }
    return text('done');
  },
  async grow(server) {
    await server.sendToolListChanged();
    return text('grown');
  },
  /** Reports progress and runs until it is cancelled; "cancelled" then says so. */
  async gate(server, { label }, { _meta, signal, sendNotification }) {
    const cancelled = new Promise((resolve) => signal.addEventListener('abort', resolve));
    await sendNotification({ method: 'notifications/progress', params: { progressToken: _meta.progressToken, progress: 1 } });
    await cancelled;
    server.cancelled = label;
    throw new Error('cancelled');
  },
  cancelled: (server) => text(String(server.cancelled)),
};

function create() {
  const server = new Server({ name: 'old', version: '1' }, { capabilities: { tools: { listChanged: true } } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({
    tools: Object.keys(tools).map((name) => ({ name, inputSchema: { type: 'object' } })),
  }));
  server.setRequestHandler(CallToolRequestSchema, ({ params }, extra) => tools[params.name](server, params.arguments ?? {}, extra));
  return server;
}

const sessions = new Map();

async function open() {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => void sessions.set(id, transport),
    onsessionclosed: (id) => void sessions.delete(id),
  });
  await create().connect(transport);
  return transport;
}

/** HTTP+SSE as the SDK's examples served it. */
async function serveSSE(req, res) {
  const url = new URL(req.url, 'http://localhost');
  if (req.method === 'GET' && url.pathname === '/sse') {
    const transport = new SSEServerTransport('/messages', res);
    sessions.set(transport.sessionId, transport);
    res.on('close', () => sessions.delete(transport.sessionId));
    return create().connect(transport);
  }
  const transport = url.pathname === '/messages' && sessions.get(url.searchParams.get('sessionId'));
  return transport ? transport.handlePostMessage(req, res) : res.writeHead(404).end();
}

const listen = (handler, path) => {
  const http = createServer((req, res) => (req.url === '/sessions' ? res.end(String(sessions.size)) : handler(req, res)));
  http.listen(0, '127.0.0.1', () => console.log(JSON.stringify({ url: `http://127.0.0.1:${http.address().port}${path}` })));
};

if (process.argv[2] === 'stdio') {
  await create().connect(new StdioServerTransport());
} else if (process.argv[2] === 'sse') {
  listen(serveSSE, '/sse');
} else {
  listen(async (req, res) => {
    const message = req.method === 'POST' ? JSON.parse(await body(req)) : undefined;
    const transport = sessions.get(req.headers['mcp-session-id']) ?? (message?.method === 'initialize' ? await open() : undefined);
    if (!transport) return res.writeHead(req.headers['mcp-session-id'] ? 404 : 400).end();
    return transport.handleRequest(req, res, message);
  }, '/mcp');
}
