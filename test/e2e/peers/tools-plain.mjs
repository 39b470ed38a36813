// Tools that never ask: results of every shape, progress, logging, header parameters, errors.
import { fromJsonSchema } from '@modelcontextprotocol/server';
import * as z from 'zod/v4';
import { unlessAborted } from './record.mjs';

export const text = (value) => ({ content: [{ type: 'text', text: typeof value === 'string' ? value : JSON.stringify(value) }] });

// One transparent pixel and 4 zero samples: real enough for clients that decode them.
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==';
const WAV = 'UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQgAAAAAAAAAAAAAAA==';

export async function progress(ctx, value, total, message) {
  const token = ctx.mcpReq._meta?.progressToken;
  if (token === undefined) return;
  await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken: token, progress: value, total, message } });
}

/** Registers the tools on one server instance; `record` outlives it. */
export function registerPlainTools(server, record) {
  const tool = (name, config, handler) => server.registerTool(name, config, record.tracked(name, handler));

  tool('echo', { title: 'Echo', description: 'Says it back', inputSchema: z.object({ text: z.string() }) }, async ({ text: said }) => {
    record.effect('echo');
    return text(said);
  });

  tool(
    'add',
    {
      description: 'Adds two numbers',
      inputSchema: z.object({ a: z.number(), b: z.number() }),
      outputSchema: z.object({ sum: z.number() }),
      annotations: { readOnlyHint: true },
    },
    async ({ a, b }) => ({ ...text({ sum: a + b }), structuredContent: { sum: a + b } }),
  );

  tool(
    'list-numbers',
    { description: 'Structured output that is no object', outputSchema: z.array(z.number()), inputSchema: z.object({}) },
    async () => ({ content: [{ type: 'text', text: 'the first three' }], structuredContent: [1, 2, 3] }),
  );

  tool('content', { description: 'One block of every kind', inputSchema: z.object({}) }, async () => ({
    content: [
      { type: 'text', text: 'plain', annotations: { audience: ['user'], priority: 0.5 } },
      { type: 'image', data: PNG, mimeType: 'image/png' },
      { type: 'audio', data: WAV, mimeType: 'audio/wav' },
      { type: 'resource', resource: { uri: 'memo://embedded', mimeType: 'text/plain', text: 'embedded text' } },
      { type: 'resource_link', uri: 'memo://fixed', name: 'fixed', title: 'The fixed memo', mimeType: 'text/plain' },
    ],
  }));

  tool('whoami', { description: 'What the server is told about its client', inputSchema: z.object({}) }, async (_args, ctx) =>
    text({ envelope: ctx.mcpReq.envelope, meta: ctx.mcpReq._meta ?? {} }),
  );

  // The handler runs until a test opens the gate, so nothing here depends on how fast the machine is.
  tool(
    'gate',
    { description: 'Waits until it is let through', inputSchema: z.object({ label: z.string() }) },
    async ({ label }, ctx) => {
      await progress(ctx, 1, 2, 'at the gate');
      await unlessAborted(record.gate(label).opened, ctx.mcpReq.signal);
      record.effect(`gate:${label}`);
      await progress(ctx, 2, 2, 'through');
      return text(`through ${label}`);
    },
  );

  tool(
    'steps',
    { description: 'Reports each step', inputSchema: z.object({ count: z.number() }) },
    async ({ count }, ctx) => {
      for (let step = 1; step <= count; step++) await progress(ctx, step, count, `step ${step}`);
      return text(`${count} steps`);
    },
  );

  tool('log', { description: 'Logs at every level', inputSchema: z.object({}) }, async (_args, ctx) => {
    for (const level of ['debug', 'info', 'warning', 'error']) await ctx.mcpReq.log(level, { said: level }, 'fixture');
    return text('logged');
  });

  tool('fail', { description: 'Fails as a tool', inputSchema: z.object({}) }, async () => {
    throw new Error('the tool failed on purpose');
  });

  tool('名前 ツール', { description: 'A name that no header carries as it is', inputSchema: z.object({ 値: z.string() }) }, async (args) =>
    text(`値=${args.値}`),
  );

  tool('headers', { description: 'Parameters that travel as headers', inputSchema: headerSchema }, async (args, ctx) =>
    text({ args, headers: Object.fromEntries(ctx.http?.req?.headers ?? []) }),
  );

  tool('bad-headers', { description: 'An illegal annotation', inputSchema: illegalHeaderSchema }, async () => text('unreachable'));

  tool('big', { description: 'A large result', inputSchema: z.object({ size: z.number() }) }, async ({ size }) => text('x'.repeat(size)));
}

const headerSchema = fromJsonSchema({
  type: 'object',
  properties: {
    region: { type: 'string', 'x-mcp-header': 'Region' },
    options: {
      type: 'object',
      properties: {
        tier: { type: 'integer', 'x-mcp-header': 'Tier' },
        dryRun: { type: 'boolean', 'x-mcp-header': 'Dry-Run' },
      },
    },
    note: { type: 'string' },
  },
  required: ['region'],
});

const illegalHeaderSchema = fromJsonSchema({
  type: 'object',
  properties: { list: { type: 'array', items: { type: 'string', 'x-mcp-header': 'Item' } } },
});
