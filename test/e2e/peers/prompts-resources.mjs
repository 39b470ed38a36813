// Prompts, resources, completion and pagination of the fixture.
import { completable, inputRequired, ProtocolError, ResourceTemplate } from '@modelcontextprotocol/server';
import * as z from 'zod/v4';
import { form } from './tools-asking.mjs';

const PAGE = 4;

export function registerPrompts(server, record) {
  registerRefusal(server, record);
  server.registerPrompt(
    'greet',
    {
      title: 'Greeting',
      description: 'Greets someone',
      argsSchema: z.object({ who: completable(z.string(), (typed) => ['Ada', 'Alan', 'Grace'].filter((n) => n.startsWith(typed))) }),
    },
    record.tracked('greet', async ({ who }) => ({ messages: [{ role: 'user', content: { type: 'text', text: `Greet ${who}` } }] })),
  );

  server.registerPrompt(
    'ask',
    { description: 'Asks before it answers', argsSchema: z.object({ topic: z.string() }) },
    record.tracked('ask', async ({ topic }, ctx) => {
      const answer = ctx.mcpReq.inputResponses?.tone;
      if (!answer) return inputRequired({ inputRequests: { tone: form(`Tone for ${topic}?`, { tone: { type: 'string' } }) } });
      return { messages: [{ role: 'user', content: { type: 'text', text: JSON.stringify({ topic, answer }) } }] };
    }),
  );
}

// The SDK turns whatever a tool throws into a tool error; only the other two kinds of request can fail as one.
function registerRefusal(server, record) {
  server.registerPrompt(
    'refuse',
    { description: 'Fails as a request', argsSchema: z.object({}) },
    record.tracked('refuse', async () => {
      throw new ProtocolError(-32602, 'refused on purpose', { hint: 'fixture' });
    }),
  );
}

/** Registers the resources; `surface` is what admin commands change between requests. */
export function registerResources(server, record, surface) {
  const read = (name, uri, config, handler) =>
    server.registerResource(name, uri, config, (url, ctx) => record.tracked(name, handler)({ uri: url.href }, ctx));
  const memo = (uri, value) => ({ contents: [{ uri, mimeType: 'text/plain', text: value }] });

  read('fixed', 'memo://fixed', { title: 'The fixed memo', mimeType: 'text/plain' }, async ({ uri }) => memo(uri, 'fixed text'));
  read('counter', 'memo://counter', { mimeType: 'text/plain' }, async ({ uri }) => memo(uri, String(surface.counter)));
  read('other', 'memo://other', { mimeType: 'text/plain' }, async ({ uri }) => memo(uri, 'other'));
  read('ask', 'memo://ask', { mimeType: 'text/plain' }, async ({ uri }, ctx) => {
    const answer = ctx.mcpReq.inputResponses?.secret;
    if (!answer) return inputRequired({ inputRequests: { secret: form('The password?', { word: { type: 'string' } }) } });
    return memo(uri, JSON.stringify({ answer }));
  });
  for (let page = 1; page <= 6; page++) read(`page-${page}`, `memo://page/${page}`, {}, async ({ uri }) => memo(uri, `page ${page}`));

  server.registerResource(
    'item',
    new ResourceTemplate('memo://item/{id}', {
      list: undefined,
      complete: { id: (typed) => ['one', 'two', 'three'].filter((id) => id.startsWith(typed)) },
    }),
    { title: 'An item', mimeType: 'text/plain' },
    (url, { id }, ctx) => record.tracked('item', async () => memo(url.href, `item ${id}`))({ uri: url.href }, ctx),
  );
}

/** Replaces the SDK's one-page answer of resources/list by pages of four under opaque cursors. */
export function paginateResources(server) {
  const all = ['fixed', 'counter', 'other', 'ask', 'page/1', 'page/2', 'page/3', 'page/4', 'page/5', 'page/6'];
  server.server.setRequestHandler('resources/list', (request) => {
    const cursor = request.params?.cursor;
    const from = cursor === undefined ? 0 : Number(Buffer.from(cursor, 'base64url').toString().slice('page:'.length));
    const page = all.slice(from, from + PAGE).map((path) => ({ uri: `memo://${path}`, name: path.replace('/', '-') }));
    const next = from + PAGE < all.length ? { nextCursor: Buffer.from(`page:${from + PAGE}`).toString('base64url') } : {};
    return { resources: page, ...next };
  });
}
