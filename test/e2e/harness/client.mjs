// A legacy client of a given release, with its conversation recorded and checked.
import assert from 'node:assert/strict';

// Members of the modern era that must never reach a legacy client (P-4).
const MODERN = /"(resultType|inputRequests|inputResponses|requestState|ttlMs|cacheScope|io\.modelcontextprotocol\/(serverInfo|subscriptionId|protocolVersion|clientInfo|clientCapabilities|logLevel))"/;

/** The answers of a user who agrees to everything. */
export const agreeable = {
  elicit: () => ({ action: 'accept', content: {} }),
  sample: () => ({ role: 'assistant', model: 'test-model', content: { type: 'text', text: 'model says hi' } }),
  roots: () => ({ roots: [{ uri: 'file:///work', name: 'work' }] }),
};

/**
 * Connects a client of `release` to `url`. `answers` decides what it declares: a kind without an answer is not declared.
 * The transport is the release's Streamable HTTP client unless `transport` makes another.
 */
export async function connect(release, url, { answers = agreeable, name = 'legacy', transport: make, fetchOptions } = {}) {
  const { Client, StreamableHTTPClientTransport, types } = await release.load();
  const capabilities = declared(release, answers);
  const client = new Client({ name: `${name}-${release.name}`, version: '9.9.9' }, { capabilities });
  const peer = { client, release, types, capabilities, asked: [], sent: [], received: [], notifications: [], errors: [] };
  answer(peer, answers);
  client.onerror = (error) => peer.errors.push(error);
  client.fallbackNotificationHandler = async (notification) => void peer.notifications.push(notification);
  peer.transport = make
    ? await make()
    : new StreamableHTTPClientTransport(new URL(url), { requestInit: fetchOptions, reconnectionOptions: QUICK });
  record(peer);
  await client.connect(peer.transport);
  return Object.assign(peer, methods(peer));
}

const QUICK = { initialReconnectionDelay: 20, maxReconnectionDelay: 200, reconnectionDelayGrowFactor: 1.5, maxRetries: 20 };

function declared(release, answers) {
  return {
    ...(answers.elicit && release.elicits ? { elicitation: release.urls ? { form: {}, url: {} } : {} } : {}),
    ...(answers.sample ? { sampling: {} } : {}),
    ...(answers.roots ? { roots: { listChanged: true } } : {}),
  };
}

function answer(peer, answers) {
  const handle = (schema, kind) => {
    if (!schema || !answers[kind]) return;
    peer.client.setRequestHandler(schema, async (request, extra) => {
      const asked = { kind, params: request.params, withdrawn: false };
      peer.asked.push(asked);
      extra.signal.addEventListener('abort', () => (asked.withdrawn = true));
      return answers[kind](request.params, { ...extra, asked });
    });
  };
  if (peer.release.elicits) handle(peer.types.ElicitRequestSchema, 'elicit');
  handle(peer.types.CreateMessageRequestSchema, 'sample');
  handle(peer.types.ListRootsRequestSchema, 'roots');
}

// Keeps every message as it was sent, and as it came before the SDK touched it.
function record(peer) {
  const send = peer.transport.send.bind(peer.transport);
  peer.transport.send = (message, options) => {
    peer.sent.push(structuredClone(message));
    return send(message, options);
  };
  let inner;
  Object.defineProperty(peer.transport, 'onmessage', {
    configurable: true,
    get: () => inner,
    set: (handler) => {
      inner = (message, extra) => {
        peer.received.push(structuredClone(message));
        return handler(message, extra);
      };
    },
  });
}

function methods(peer) {
  const { client, transport } = peer;
  return {
    call: (name, args = {}, options) => client.callTool({ name, arguments: args }, undefined, options),
    /** A call whose progress is recorded beside its result. */
    async watch(name, args = {}, options = {}) {
      const progress = [];
      const result = await client.callTool({ name, arguments: args }, undefined, { ...options, onprogress: (p) => progress.push(p) });
      return { result, progress };
    },
    texts: (result) => result.content.filter((block) => block.type === 'text').map((block) => block.text),
    json: (result) => JSON.parse(result.content[0].text),
    of: (method) => peer.notifications.filter((n) => n.method === method),
    /** Ends the session and checks what the whole conversation must have kept to. */
    async close() {
      await transport.terminateSession?.().catch(() => {});
      await client.close();
      for (const message of peer.received) assert.doesNotMatch(JSON.stringify(message), MODERN, 'P-4: a modern member came down');
      const stray = peer.errors.filter((error) => /unknown message ID/i.test(error.message));
      assert.deepEqual(stray, [], 'a response came that belonged to nothing');
      progressKeepsItsPlace(peer);
    },
  };
}

// What came is looked at and not what the SDK made of it: it hands a response on at once but a notification a moment later, so
// whatever was in the same chunk as the response looks late to it, whichever server wrote it.
function progressKeepsItsPlace({ sent, received }) {
  const asked = new Map(sent.filter((m) => m.params?._meta?.progressToken !== undefined).map((m) => [m.params._meta.progressToken, m.id]));
  const answered = new Set();
  for (const message of received) {
    if (message.method === undefined) answered.add(message.id);
    if (message.method !== 'notifications/progress') continue;
    const { progressToken } = message.params;
    assert.ok(asked.has(progressToken), `progress for the token ${progressToken}, which nobody gave`);
    assert.ok(!answered.has(asked.get(progressToken)), `progress for the token ${progressToken} after the response`);
  }
}
