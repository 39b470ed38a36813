// The releases of the official TypeScript client that play the legacy clients, one per era.
//
// 1.10.2 is the last release that offers 2024-11-05 and the first generation with Streamable HTTP, so it carries that
// revision over every transport; 1.4.1 knows only stdio, HTTP+SSE and WebSocket.

const load = async (name, early) => {
  const [client, streamable, types] = await Promise.all([
    import(`${name}/client/index.js`),
    early ? {} : import(`${name}/client/streamableHttp.js`),
    import(`${name}/types.js`),
  ]);
  return { Client: client.Client, StreamableHTTPClientTransport: streamable.StreamableHTTPClientTransport, types };
};

const release = (name, version, can) => ({ name, version, load: () => load(name, can.early), ...can });

/** Oldest first. `elicits`: the release knows elicitation; `urls`: URL mode; `structured`: structured content and resource links.
 * `resumes`: how it gets back to a POST's stream after a drop. 1.10 and 1.12 reconnect whenever they saw an event id, 1.20 only when
 * the application asks for it, 1.32 after a priming event. */
export const releases = [
  release('sdk-2024-11', '2024-11-05', { elicits: false, urls: false, structured: false, resumes: 'itself' }),
  release('sdk-2025-03', '2025-03-26', { elicits: false, urls: false, structured: false, resumes: 'itself' }),
  release('sdk-2025-06', '2025-06-18', { elicits: true, urls: false, structured: true, resumes: 'when told' }),
  release('sdk-2025-11', '2025-11-25', { elicits: true, urls: true, structured: true, resumes: 'itself' }),
];

/** Before Streamable HTTP: stdio, HTTP+SSE and WebSocket only. */
export const early = release('sdk-2024-11-early', '2024-11-05', { early: true, elicits: false, urls: false, structured: false });

/** Between those above: what differs from release to release shows in some of them first. */
const between = [
  release('sdk-1-0-4', '2024-11-05', { early: true, elicits: false, urls: false, structured: false }),
  release('sdk-1-8-0', '2024-11-05', { early: true, elicits: false, urls: false, structured: false }),
  release('sdk-1-13-0', '2025-06-18', { elicits: true, urls: false, structured: true }),
  release('sdk-1-17-5', '2025-06-18', { elicits: true, urls: false, structured: true }),
  release('sdk-1-22-0', '2025-06-18', { elicits: true, urls: false, structured: true }),
  release('sdk-1-24-3', '2025-11-25', { elicits: true, urls: true, structured: true }),
  release('sdk-1-26-0', '2025-11-25', { elicits: true, urls: true, structured: true }),
];

export const every = [early, ...releases, ...between];

export const eliciting = releases.filter((r) => r.elicits);
export const newest = releases.at(-1);
