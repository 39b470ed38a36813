// A legacy conversation by hand, for what no SDK client would send.

/** Opens a session with plain fetch. `post` returns the response; `request` the answered message. */
export async function rawSession(url, { version = '2025-11-25', capabilities = { elicitation: {}, sampling: {}, roots: {} } } = {}) {
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const post = (message, extra = {}) =>
    fetch(url, { method: 'POST', headers: { ...headers, ...extra }, body: typeof message === 'string' ? message : JSON.stringify(message) });
  const params = { protocolVersion: version, capabilities, clientInfo: { name: 'raw', version: '1' } };
  const opened = await post({ jsonrpc: '2.0', id: 'init', method: 'initialize', params });
  const session = opened.headers.get('mcp-session-id');
  const initialized = (await messages(opened).next()).value;
  Object.assign(headers, { 'mcp-session-id': session, 'mcp-protocol-version': version });
  await (await post({ jsonrpc: '2.0', method: 'notifications/initialized' })).arrayBuffer();
  return {
    session,
    headers,
    initialized,
    post,
    /** Posts a request and yields the messages of its response as they come. */
    async *exchange(message, extra) {
      yield* messages(await post(message, extra));
    },
    get: (extra = {}) => fetch(url, { headers: { ...headers, accept: 'text/event-stream', ...extra } }),
    end: () => fetch(url, { method: 'DELETE', headers }),
  };
}

/** The JSON-RPC messages of a JSON or SSE response, each with its event id as `eventId`. */
export async function* messages(response) {
  if (!response.headers.get('content-type')?.includes('text/event-stream')) {
    const text = await response.text();
    if (text) yield JSON.parse(text);
    return;
  }
  for await (const { id, data } of events(response.body)) {
    if (data) yield Object.assign(JSON.parse(data), { eventId: id });
  }
}

/** The events of an SSE body: id and data, priming events included. */
export async function* events(body) {
  const decoder = new TextDecoder();
  let buffer = '';
  for await (const chunk of body) {
    buffer += decoder.decode(chunk, { stream: true });
    for (let end; (end = buffer.indexOf('\n\n')) >= 0; buffer = buffer.slice(end + 2)) {
      const fields = buffer.slice(0, end).split('\n').filter((line) => line && !line.startsWith(':'));
      if (fields.length === 0) continue;
      const value = (name) => fields.filter((f) => f.startsWith(`${name}:`)).map((f) => f.slice(name.length + 1).replace(/^ /, ''));
      yield { id: value('id')[0], data: value('data').join('\n'), retry: value('retry')[0] };
    }
  }
}

export const toolCall = (id, name, args, meta) => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: args, ...(meta ? { _meta: meta } : {}) },
});
