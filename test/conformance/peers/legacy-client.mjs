// The client suite's command: `node legacy-client.mjs [--agent] URL`. It puts the bridge in front of the suite's mock server and drives it
// with the legacy SDK, so that the client under test is the bridge. With --agent the bridge signs in, and the client knows nothing
// of that; with --mute the client is one of 2024-11-05 that declares nothing, and its person answers on the bridge's page.
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { authorizingFetch, standingIn } from './oauth.mjs';
import { agentFlags } from './agent.mjs';
import { insist, person, speaking } from './person.mjs';
import { startBridge } from '../../e2e/harness/bridge.mjs';

const upstream = process.argv.at(-1);
const agent = process.argv.includes('--agent');
const mute = process.argv.includes('--mute');
const scenario = process.env.MCP_CONFORMANCE_SCENARIO;
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');
// Then the bridge stands under the server's name: to the client its metadata are the server's.
const ownSignIn = scenario.startsWith('auth/') && !agent;

/** A legacy client that cannot be asked, and its person. */
async function connectMute(url) {
  const client = new Client({ name: 'mute-client', version: '1.0.0' });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { fetch: speaking('2024-11-05') }));
  const someone = await person();
  const { callTool, close } = client;
  client.callTool = (params) => insist(someone, () => callTool.call(client, params));
  client.close = async () => {
    await someone.close();
    await close.call(client);
  };
  return client;
}

/** A legacy client that agrees to everything it is asked. */
async function connect(url) {
  const client = new Client({ name: 'legacy-conformance-client', version: '1.0.0' }, { capabilities: { elicitation: {}, sampling: {}, roots: {} } });
  client.setRequestHandler(ElicitRequestSchema, async () => ({ action: 'accept', content: { confirmed: true } }));
  client.setRequestHandler(CreateMessageRequestSchema, async () => ({
    role: 'assistant',
    model: 'conformance',
    content: { type: 'text', text: 'an answer' },
  }));
  client.setRequestHandler(ListRootsRequestSchema, async () => ({ roots: [{ uri: 'file:///work' }] }));
  if (!ownSignIn) await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  else await client.connect(new StreamableHTTPClientTransport(new URL(upstream), { fetch: authorizingFetch(upstream, context, standingIn(upstream, url)) }));
  return client;
}

const call = (client, name, args = {}) => client.callTool({ name, arguments: args });

// What a user of each scenario would do; scenarios that only want a list need no entry.
const scenarios = {
  tools_call: (client) => call(client, 'add_numbers', { a: 5, b: 3 }),

  'sep-2322-client-request-state': async (client) => {
    const asking = [call(client, 'test_mrtr_echo_state'), call(client, 'test_mrtr_no_state')];
    await call(client, 'test_mrtr_unrelated');
    await Promise.all(asking);
    await call(client, 'test_mrtr_no_result_type');
  },

  'http-standard-headers': async (client, tools) => {
    for (const { name } of tools) await call(client, name);
    const { resources } = await client.listResources();
    for (const { uri } of resources) await client.readResource({ uri });
    const { prompts } = await client.listPrompts();
    for (const { name } of prompts) await client.getPrompt({ name });
  },

  'http-custom-headers': async (client) => {
    for (const { name, arguments: args } of context.toolCalls) await call(client, name, args);
  },

  // Every tool that the bridge let through is called; the invalid ones are asked for as well, and must not reach the server.
  'http-invalid-tool-headers': async (client, tools) => {
    for (const { name } of tools) await call(client, name, { value: 'x' });
    for (const name of ['invalid_empty_header', 'invalid_array_header', 'invalid_number_header']) await call(client, name, { value: 'x' }).catch(() => {});
  },

  'json-schema-2020-12-preservation': (client, tools) =>
    call(client, 'json_schema_echo', { schema: tools.find((tool) => tool.name === 'json_schema_2020_12_tool').inputSchema }),
};

const authorized = (client) => call(client, 'test-tool');

const flags = mute ? ['--questions', 'page', '--questions.wait', '0s', '--questions.open', 'off'] : agent ? await agentFlags(context, upstream) : ownSignIn ? ['--public-url', upstream] : [];
const bridge = await startBridge(upstream, { flags, path: new URL(upstream).pathname });
let client;
try {
  client = await (mute ? connectMute : connect)(bridge.url);
  const { tools } = await client.listTools();
  const drive = scenario.startsWith('auth/') ? authorized : scenarios[scenario];
  await drive?.(client, tools);
} catch (error) {
  process.stderr.write(`${error?.stack ?? error}\n--- bridge ---\n${bridge.log()}\n`);
  process.exitCode = 1;
} finally {
  await client?.close(); // its person's browser, too, which would keep this process
  await bridge.stop();
}
