// Tools that ask by multi round-trip: one round, several, all kinds at once, state alone.
import { inputRequired } from '@modelcontextprotocol/server';
import * as z from 'zod/v4';
import { progress, text } from './tools-plain.mjs';
import { unlessAborted } from './record.mjs';

export const form = (message, properties, required = Object.keys(properties)) =>
  inputRequired.elicit({ message, requestedSchema: { type: 'object', properties, required } });

export const sample = (prompt) =>
  inputRequired.createMessage({ messages: [{ role: 'user', content: { type: 'text', text: prompt } }], maxTokens: 64 });

/** Registers the asking tools. `mint` seals a payload into an HMAC-protected request state. */
export function registerAskingTools(server, record, mint) {
  const tool = (name, shape, handler) =>
    server.registerTool(name, { description: name, inputSchema: z.object(shape) }, record.tracked(name, handler));

  tool('confirm', { subject: z.string() }, async ({ subject }, ctx) => {
    const answer = ctx.mcpReq.inputResponses?.confirm;
    if (!answer) {
      return inputRequired({
        inputRequests: { confirm: form(`Go ahead with ${subject}?`, { sure: { type: 'boolean' }, note: { type: 'string' } }, ['sure']) },
      });
    }
    if (answer.action === 'accept') record.effect(`confirm:${subject}`);
    return text({ subject, answer });
  });

  // Round 0 asks for a name, round 1 for a colour; the name survives only in the sealed state.
  tool('two-rounds', { label: z.string() }, async ({ label }, ctx) => {
    const { inputResponses } = ctx.mcpReq;
    const state = ctx.mcpReq.requestState();
    if (!state) {
      return inputRequired({
        inputRequests: { name: form(`${label}: your name?`, { name: { type: 'string' } }) },
        requestState: await mint({ step: 1, label }, ctx),
      });
    }
    if (state.step === 1) {
      const name = inputResponses?.name?.content?.name;
      return inputRequired({
        inputRequests: { colour: form(`${label}: ${name}, your colour?`, { colour: { type: 'string', enum: ['red', 'green'] } }) },
        requestState: await mint({ step: 2, label, name }, ctx),
      });
    }
    record.effect(`two-rounds:${label}`);
    return text({ label: state.label, name: state.name, colour: inputResponses?.colour?.content?.colour, keys: Object.keys(inputResponses ?? {}) });
  });

  // The second round asks without state: the state of the first must not come back (D-I4).
  tool('state-dropped', {}, async (_args, ctx) => {
    const { inputResponses } = ctx.mcpReq;
    const state = ctx.mcpReq.requestState();
    if (state) return inputRequired({ inputRequests: { last: form('last?', { ok: { type: 'boolean' } }) } });
    if (inputResponses?.last) return text({ stateInLastRound: state ?? null, keys: Object.keys(inputResponses) });
    return inputRequired({ inputRequests: { first: form('first?', { ok: { type: 'boolean' } }) }, requestState: await mint({ step: 1 }, ctx) });
  });

  tool('state-only', { rounds: z.number() }, async ({ rounds }, ctx) => {
    const done = ctx.mcpReq.requestState()?.done ?? 0;
    if (done < rounds) return inputRequired({ requestState: await mint({ done: done + 1 }, ctx) });
    record.effect('state-only');
    return text({ done, answers: ctx.mcpReq.inputResponses ?? null });
  });

  // Asks the same again however it is answered, so that only the bridge's own limit ends it.
  tool('insatiable', { kind: z.enum(['form', 'state']) }, async ({ kind }, ctx) => {
    const round = (ctx.mcpReq.requestState()?.round ?? 0) + 1;
    const inputRequests = kind === 'form' ? { more: form(`more? (${round})`, { ok: { type: 'boolean' } }) } : undefined;
    return inputRequired({ ...(inputRequests ? { inputRequests } : {}), requestState: await mint({ round }, ctx) });
  });

  tool('sampling', { prompt: z.string() }, async ({ prompt }, ctx) => {
    const answer = ctx.mcpReq.inputResponses?.model;
    if (!answer) return inputRequired({ inputRequests: { model: sample(prompt) } });
    return text({ answer });
  });

  tool('roots', {}, async (_args, ctx) => {
    const answer = ctx.mcpReq.inputResponses?.roots;
    if (!answer) return inputRequired({ inputRequests: { roots: inputRequired.listRoots() } });
    return text({ answer });
  });

  tool('three', { label: z.string() }, async ({ label }, ctx) => {
    const answers = ctx.mcpReq.inputResponses;
    if (!answers) {
      return inputRequired({
        inputRequests: { who: form(`${label}: who?`, { who: { type: 'string' } }), model: sample(`${label}: think`), roots: inputRequired.listRoots() },
        requestState: await mint({ label }, ctx),
      });
    }
    return text({ label: ctx.mcpReq.requestState()?.label, answers });
  });

  tool('progress-confirm', { label: z.string() }, async ({ label }, ctx) => {
    if (!ctx.mcpReq.inputResponses) {
      await progress(ctx, 1, 4, 'round 0');
      await progress(ctx, 2, 4, 'round 0');
      return inputRequired({ inputRequests: { go: form(`${label}: go on?`, { go: { type: 'boolean' } }) }, requestState: await mint({ label }, ctx) });
    }
    await progress(ctx, 1, 4, 'round 1');
    await progress(ctx, 2, 4, 'round 1');
    return text('done');
  });

  // Asks first and then runs until the gate opens: the retry itself is what gets cancelled.
  tool('confirm-gate', { label: z.string() }, async ({ label }, ctx) => {
    const answer = ctx.mcpReq.inputResponses?.go;
    if (!answer) return inputRequired({ inputRequests: { go: form(`${label}: go?`, { go: { type: 'boolean' } }) } });
    await unlessAborted(record.gate(label).opened, ctx.mcpReq.signal);
    record.effect(`confirm-gate:${label}`);
    return text({ label, answer });
  });

  tool('choices', {}, async (_args, ctx) => {
    const answer = ctx.mcpReq.inputResponses?.choice;
    if (!answer) return inputRequired({ inputRequests: { choice: inputRequired.elicit({ message: 'Choose', requestedSchema: choiceSchema }) } });
    return text({ answer });
  });

  tool('visit', { url: z.string() }, async ({ url }, ctx) => {
    const answer = ctx.mcpReq.inputResponses?.visit;
    if (!answer) return inputRequired({ inputRequests: { visit: inputRequired.elicitUrl({ message: 'Please visit', url }) } });
    return text({ answer });
  });
}

const choiceSchema = {
  type: 'object',
  properties: {
    plain: { type: 'string', enum: ['a', 'b'] },
    titled: { type: 'string', oneOf: [{ const: 'r', title: 'Red' }, { const: 'g', title: 'Green' }] },
    many: { type: 'array', items: { anyOf: [{ const: 'x', title: 'Ex' }, { const: 'y', title: 'Why' }] } },
  },
  required: ['plain', 'titled'],
};
