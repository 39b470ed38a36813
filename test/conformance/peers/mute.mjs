// What the suite's scenarios of elicitation, sampling and roots call, called by clients that declare nothing: `node mute.mjs URL -o DIR`.
// The suite's own driver cannot: it wants to be asked itself. People answer in Chromium, a stub answers for the model. Each scenario
// leaves its checks as the suite does.
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { startBridge } from '../../e2e/harness/bridge.mjs';
import { insist, person, speaking } from './person.mjs';

const { values, positionals } = parseArgs({ allowPositionals: true, options: { output: { type: 'string', short: 'o' }, url: { type: 'string' } } });
const folder = mkdtempSync(join(realpathSync(tmpdir()), 'bridge-root-'));
const said = 'Paris, says the stub.';

const tool = (name, args, expected) => ({ request: (client) => client.callTool({ name, arguments: args }), expected });
const scenarios = {
  'tools-call-elicitation': tool('test_elicitation', { message: 'Who are you?' }, /accept.*Ada.*ada@example\.com|accept.*Ada/s),
  'tools-call-sampling': tool('test_sampling', { prompt: 'The capital of France?' }, /says the stub/),
  'elicitation-sep1034-defaults': tool('test_elicitation_sep1034_defaults', {}, /accept.*John Doe.*30.*95\.5.*active/s),
  'elicitation-sep1330-enums': tool('test_elicitation_sep1330_enums', {}, /accept/),
  'input-required-result-basic-elicitation': tool('test_input_required_result_elicitation', {}, /^Hello, Ada!$/),
  'input-required-result-basic-sampling': tool('test_input_required_result_sampling', {}, /says the stub/),
  'input-required-result-basic-list-roots': tool('test_input_required_result_list_roots', {}, new RegExp(`^Roots: file://${folder}$`)),
  'input-required-result-request-state': tool('test_input_required_result_request_state', {}, /^state-ok$/),
  'input-required-result-multiple-input-requests': tool('test_input_required_result_multiple_inputs', {}, /^Received client_roots, greeting, user_name$/),
  'input-required-result-multi-round': tool('test_input_required_result_multi_round', {}, /^Ada likes Ada$/),
  'input-required-result-capability-check': tool('test_input_required_result_capabilities', {}, /^done$/),
  'input-required-result-non-tool-request': {
    request: async (client) => ({ content: [(await client.getPrompt({ name: 'test_input_required_result_prompt' })).messages[0].content] }),
    expected: /^Context: Ada$/,
  },
};

async function attempt(client, someone, { request, expected }) {
  const { isError, content } = await insist(someone, () => request(client));
  const text = content.map((block) => block.text).join('\n');
  if (isError || !expected.test(text)) throw new Error(`got ${text}`);
}

/** An API of chat completions that always says the same. */
async function stub() {
  const server = createServer((req, res) => {
    req.resume().on('end', () => res.end(JSON.stringify({ model: 'stub', choices: [{ message: { content: said }, finish_reason: 'stop' }] })));
  }).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  return { url: `http://127.0.0.1:${server.address().port}/v1`, stop: () => server.close() };
}

const model = await stub();
const someone = await person();
const bridge = await startBridge(values.url ?? positionals[0], {
  flags: ['--questions', 'page', '--questions.wait', '0s', '--questions.open', 'off', '--roots', `file://${folder}`,
    '--sampling.provider', 'openai', '--sampling.model', 'stub', '--sampling.url', model.url],
});
try {
  for (const version of ['2024-11-05', '2025-06-18']) {
    for (const [name, scenario] of Object.entries(scenarios)) {
      const client = new Client({ name: 'mute-client', version: '1.0.0' });
      const check = { id: name, status: 'SUCCESS', description: `${name} for a client of ${version} that declares nothing` };
      try {
        await client.connect(new StreamableHTTPClientTransport(new URL(bridge.url), { fetch: speaking(version) }));
        await attempt(client, someone, scenario);
      } catch (error) {
        Object.assign(check, { status: 'FAILURE', errorMessage: error.message });
      }
      await client.close().catch(() => {});
      const dir = join(values.output, `${name} at ${version}`);
      mkdirSync(dir, { recursive: true });
      writeFileSync(join(dir, 'checks.json'), JSON.stringify([check]));
    }
  }
} finally {
  await someone.close();
  model.stop();
  await bridge.stop();
  rmSync(folder, { recursive: true, force: true });
}
