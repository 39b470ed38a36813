// What the suite of 2026-07-28 itself asks of a server: input-required results and the diagnostic hooks of server-stateless.
import { CLIENT_CAPABILITIES_META_KEY, inputRequired } from '@modelcontextprotocol/server';
import * as z from 'zod/v4';
import { text } from './content.mjs';

const form = (message, properties) =>
  inputRequired.elicit({ message, requestedSchema: { type: 'object', properties, required: Object.keys(properties) } });
const sample = (prompt, maxTokens) =>
  inputRequired.createMessage({ messages: [{ role: 'user', content: { type: 'text', text: prompt } }], maxTokens });
const NAME = { name: { type: 'string' } };

/** The accepted content of a form, when it has a string under `field`; anything else is asked for again. */
const accepted = (ctx, key, field) => {
  const answer = ctx.mcpReq.inputResponses?.[key];
  return answer?.action === 'accept' && typeof answer.content?.[field] === 'string' ? answer.content[field] : undefined;
};

export function registerMrtr(server, { mint, changes }) {
  const tool = (name, handler) => server.registerTool(name, { description: `Conformance fixture ${name}`, inputSchema: z.object({}) }, handler);
  registerOneRound(tool);
  registerWithState(tool, mint);
  registerStateless(tool, changes);

  server.registerPrompt('test_input_required_result_prompt', { description: 'Asks for its context' }, async (ctx) => {
    const context = accepted(ctx, 'user_context', 'context');
    if (context === undefined) {
      return inputRequired({ inputRequests: { user_context: form('What context should the prompt use?', { context: { type: 'string' } }) } });
    }
    return { messages: [{ role: 'user', content: { type: 'text', text: `Context: ${context}` } }] };
  });
}

function registerOneRound(tool) {
  tool('test_input_required_result_elicitation', async (_args, ctx) => {
    const name = accepted(ctx, 'user_name', 'name');
    if (name === undefined) return inputRequired({ inputRequests: { user_name: form('What is your name?', NAME) } });
    return text(`Hello, ${name}!`);
  });
  tool('test_input_required_result_sampling', async (_args, ctx) => {
    const answer = ctx.mcpReq.inputResponses?.capital_question;
    if (!answer) return inputRequired({ inputRequests: { capital_question: sample('What is the capital of France?', 100) } });
    return text(`The model said: ${answer.content?.text ?? JSON.stringify(answer.content)}`);
  });
  tool('test_input_required_result_list_roots', async (_args, ctx) => {
    const answer = ctx.mcpReq.inputResponses?.client_roots;
    if (!answer) return inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } });
    return text(`Roots: ${(answer.roots ?? []).map((root) => root.uri).join(', ')}`);
  });
  tool('test_input_required_result_capabilities', async (_args, ctx) => {
    if (ctx.mcpReq.inputResponses) return text('done');
    const declared = ctx.mcpReq.envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? {};
    const inputRequests = {
      ...(declared.elicitation ? { user_name: form('What is your name?', NAME) } : {}),
      ...(declared.sampling ? { greeting: sample('Generate a greeting', 50) } : {}),
      ...(declared.roots ? { client_roots: inputRequired.listRoots() } : {}),
    };
    return Object.keys(inputRequests).length > 0 ? inputRequired({ inputRequests }) : text('nothing to ask');
  });
}

function registerWithState(tool, mint) {
  const confirm = (name, word) =>
    tool(name, async (_args, ctx) => {
      if (ctx.mcpReq.requestState()) return text(word);
      return inputRequired({ inputRequests: { confirm: form('Please confirm', { ok: { type: 'boolean' } }) }, requestState: await mint({ name }, ctx) });
    });
  confirm('test_input_required_result_request_state', 'state-ok');
  confirm('test_input_required_result_tampered_state', 'state-ok');

  tool('test_input_required_result_multiple_inputs', async (_args, ctx) => {
    const { inputResponses } = ctx.mcpReq;
    if (inputResponses) return text(`Received ${Object.keys(inputResponses).sort().join(', ')}`);
    return inputRequired({
      inputRequests: { user_name: form('What is your name?', NAME), greeting: sample('Generate a greeting', 50), client_roots: inputRequired.listRoots() },
      requestState: await mint({ step: 1 }, ctx),
    });
  });
  tool('test_input_required_result_multi_round', async (_args, ctx) => {
    const state = ctx.mcpReq.requestState();
    if (state?.step === 2) return text(`${state.name} likes ${accepted(ctx, 'step2', 'color')}`);
    if (state?.step === 1) {
      return inputRequired({
        inputRequests: { step2: form('Step 2: What is your favorite color?', { color: { type: 'string' } }) },
        requestState: await mint({ step: 2, name: accepted(ctx, 'step1', 'name') }, ctx),
      });
    }
    return inputRequired({ inputRequests: { step1: form('Step 1: What is your name?', NAME) }, requestState: await mint({ step: 1 }, ctx) });
  });
}

function registerStateless(tool, changes) {
  tool('test_missing_capability', async (_args, ctx) => {
    if (ctx.mcpReq.inputResponses?.model) return text('answered');
    return inputRequired({ inputRequests: { model: sample('anything', 10) } });
  });
  tool('test_streaming_elicitation', async (_args, ctx) => {
    if (ctx.mcpReq.inputResponses?.user_name) return text('answered');
    return inputRequired({ inputRequests: { user_name: form('What is your name?', NAME) } });
  });
  tool('test_logging_tool', async (_args, ctx) => {
    await ctx.mcpReq.log('info', 'logged');
    return text('logged');
  });
  tool('test_trigger_tool_change', async () => {
    changes.tools();
    return text('changed');
  });
  tool('test_trigger_prompt_change', async () => {
    changes.prompts();
    return text('changed');
  });
}
