// A modern-only server with every fixture of the legacy server suite. Prints one JSON line with its address.
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import { localhostHostValidation, localhostOriginValidation, toNodeHandler } from '@modelcontextprotocol/node';
import { completable, createMcpHandler, createRequestStateCodec, McpServer, ResourceTemplate } from '@modelcontextprotocol/server';
import * as z from 'zod/v4';
import { PNG } from './content.mjs';
import { registerMrtr } from './mrtr.mjs';
import { registerTools } from './tools.mjs';

const codec = createRequestStateCodec({ key: randomBytes(32), bind: (ctx) => ctx.mcpReq.method });
const changes = { tools: () => handler.notify.toolsChanged(), prompts: () => handler.notify.promptsChanged() };
const mint = (payload, ctx) => codec.mint(payload, ctx);

function create() {
  const server = new McpServer(
    { name: 'conformance-fixture', version: '1.0.0' },
    {
      capabilities: {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { listChanged: true, subscribe: true },
        logging: {},
        completions: {},
      },
      cacheHints: Object.fromEntries(
        ['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list', 'resources/read', 'server/discover'].map((method) => [
          method,
          { ttlMs: 1000, cacheScope: 'private' },
        ]),
      ),
      requestState: { verify: codec.verify },
    },
  );
  registerTools(server);
  registerMrtr(server, { mint, changes });
  registerResources(server);
  registerPrompts(server);
  return server;
}

function registerResources(server) {
  const fixed = (name, uri, mimeType, contents) =>
    server.registerResource(name, uri, { description: name, mimeType }, async () => ({ contents: [{ uri, mimeType, ...contents }] }));
  fixed('static-text', 'test://static-text', 'text/plain', { text: 'This is the content of the static text resource.' });
  fixed('static-binary', 'test://static-binary', 'image/png', { blob: PNG });
  fixed('watched-resource', 'test://watched-resource', 'text/plain', { text: 'Watched resource content' });
  server.registerResource(
    'template',
    new ResourceTemplate('test://template/{id}/data', { list: undefined }),
    { description: 'A template', mimeType: 'application/json' },
    async (uri, { id }) => ({
      contents: [{ uri: uri.href, mimeType: 'application/json', text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }) }],
    }),
  );
}

function registerPrompts(server) {
  const says = (...content) => ({ messages: content.map((block) => ({ role: 'user', content: block })) });
  const text = (value) => ({ type: 'text', text: value });
  server.registerPrompt('test_simple_prompt', { description: 'A simple prompt' }, async () => says(text('This is a simple prompt for testing.')));
  const cities = (typed) => ['paris', 'park', 'party'].filter((word) => word.startsWith(typed));
  server.registerPrompt(
    'test_prompt_with_arguments',
    { description: 'Two arguments', argsSchema: z.object({ arg1: completable(z.string(), cities), arg2: z.string() }) },
    async ({ arg1, arg2 }) => says(text(`Prompt with arguments: arg1='${arg1}', arg2='${arg2}'`)),
  );
  server.registerPrompt(
    'test_prompt_with_embedded_resource',
    { description: 'Embeds a resource', argsSchema: z.object({ resourceUri: z.string() }) },
    async ({ resourceUri }) =>
      says(
        { type: 'resource', resource: { uri: resourceUri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' } },
        text('Please process the embedded resource above.'),
      ),
  );
  server.registerPrompt('test_prompt_with_image', { description: 'Carries an image' }, async () =>
    says({ type: 'image', data: PNG, mimeType: 'image/png' }, text('Please analyze the image above.')),
  );
}

const handler = createMcpHandler(create, { legacy: 'reject' });
const serve = toNodeHandler(handler);
const guards = [localhostHostValidation(), localhostOriginValidation()];
const http = createServer((req, res) => {
  if (guards.every((allowed) => allowed(req, res))) void serve(req, res);
});
await new Promise((resolve) => http.listen(0, '127.0.0.1', resolve));
process.stdout.write(`${JSON.stringify({ url: `http://127.0.0.1:${http.address().port}/mcp` })}\n`);
process.stdin.on('end', () => process.exit(0)).resume();
