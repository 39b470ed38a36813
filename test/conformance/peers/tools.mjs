// The tools of the legacy server suite. Where that suite expects a server request, this modern-only server asks by MRTR.
import { fromJsonSchema, inputRequired } from '@modelcontextprotocol/server';
import * as z from 'zod/v4';
import { pause, PNG, SCHEMA_2020_12, text, WAV } from './content.mjs';

const none = z.object({});

export function registerTools(server) {
  const tool = (name, handler, inputSchema = none) => server.registerTool(name, { description: `Conformance fixture ${name}`, inputSchema }, handler);
  registerContent(tool);
  registerInterim(tool);
  registerLegacyQuestions(tool);
}

function registerContent(tool) {
  tool('test_simple_text', async () => text('This is a simple text response for testing.'));
  tool('test_image_content', async () => ({ content: [{ type: 'image', data: PNG, mimeType: 'image/png' }] }));
  tool('test_audio_content', async () => ({ content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }] }));
  tool('test_embedded_resource', async () => ({
    content: [
      { type: 'resource', resource: { uri: 'test://embedded-resource', mimeType: 'text/plain', text: 'This is an embedded resource content.' } },
    ],
  }));
  tool('test_multiple_content_types', async () => ({
    content: [
      { type: 'text', text: 'Multiple content types test:' },
      { type: 'image', data: PNG, mimeType: 'image/png' },
      {
        type: 'resource',
        resource: { uri: 'test://mixed-content-resource', mimeType: 'application/json', text: JSON.stringify({ test: 'data', value: 123 }) },
      },
    ],
  }));
  tool('test_error_handling', async () => {
    throw new Error('This tool intentionally returns an error for testing');
  });
  tool('json_schema_2020_12_tool', async () => text('ok'), fromJsonSchema(SCHEMA_2020_12));
  tool(
    'test_header_parameter',
    async ({ region }) => text(`region ${region}`),
    fromJsonSchema({ type: 'object', properties: { region: { type: 'string', 'x-mcp-header': 'Region' } }, required: ['region'] }),
  );
}

function registerInterim(tool) {
  tool('test_tool_with_logging', async (_args, ctx) => {
    await ctx.mcpReq.log('info', 'Tool execution started');
    await pause(50);
    await ctx.mcpReq.log('info', 'Tool processing data');
    await pause(50);
    await ctx.mcpReq.log('info', 'Tool execution completed');
    return text('Tool with logging executed');
  });
  tool('test_tool_with_progress', async (_args, ctx) => {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    for (const progress of [0, 50, 100]) {
      if (progress > 0) await pause(50);
      if (progressToken !== undefined) {
        await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
      }
    }
    return text('Tool with progress executed');
  });
  // The polling scenario looks at nothing but SSE: longer than the bridge waits before it commits to a stream (2 s), and then so long
  // that the stream is ended once (after 2.5 s, `bridge-polling` of targets.mjs) and not twice, with a second to spare both ways.
  tool('test_reconnection', async () => {
    await pause(5750);
    return text('Reconnection test completed');
  });
}

const ask = (key, message, properties, required) =>
  inputRequired({ inputRequests: { [key]: inputRequired.elicit({ message, requestedSchema: { type: 'object', properties, required } }) } });

// The answer of one elicitation, or the question when it has not been answered yet.
const once = (key, question, done) => async (args, ctx) => {
  const answer = ctx.mcpReq.inputResponses?.[key];
  return answer ? done(answer) : question(args);
};

function registerLegacyQuestions(tool) {
  tool(
    'test_sampling',
    once(
      'model',
      ({ prompt }) =>
        inputRequired({
          inputRequests: { model: inputRequired.createMessage({ messages: [{ role: 'user', content: { type: 'text', text: prompt } }], maxTokens: 100 }) },
        }),
      (answer) => text(`LLM response: ${answer.content?.text ?? ''}`),
    ),
    z.object({ prompt: z.string() }),
  );

  const person = {
    username: { type: 'string', description: "User's response" },
    email: { type: 'string', description: "User's email address" },
  };
  tool(
    'test_elicitation',
    once(
      'user',
      ({ message }) => ask('user', message, person, ['username', 'email']),
      ({ action, content }) => text(`User response: action: ${action}, content: ${JSON.stringify(content ?? {})}`),
    ),
    z.object({ message: z.string() }),
  );

  const completed = ({ action, content }) => text(`Elicitation completed: action=${action}, content=${JSON.stringify(content ?? {})}`);
  tool(
    'test_elicitation_sep1034_defaults',
    once(
      'defaults',
      () =>
        ask('defaults', 'Please review and update the form fields with defaults', {
          name: { type: 'string', description: 'User name', default: 'John Doe' },
          age: { type: 'integer', description: 'User age', default: 30 },
          score: { type: 'number', description: 'User score', default: 95.5 },
          status: { type: 'string', description: 'User status', enum: ['active', 'inactive', 'pending'], default: 'active' },
          verified: { type: 'boolean', description: 'Verification status', default: true },
        }),
      completed,
    ),
  );

  const options = ['option1', 'option2', 'option3'];
  const titled = (word) => ['First', 'Second', 'Third'].map((nth, i) => ({ const: `value${i + 1}`, title: `${nth} ${word}` }));
  tool(
    'test_elicitation_sep1330_enums',
    once(
      'enums',
      () =>
        ask('enums', 'Please select options from the enum fields', {
          untitledSingle: { type: 'string', enum: options },
          titledSingle: { type: 'string', oneOf: titled('Option') },
          legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'], enumNames: ['Option One', 'Option Two', 'Option Three'] },
          untitledMulti: { type: 'array', items: { type: 'string', enum: options } },
          titledMulti: { type: 'array', items: { anyOf: titled('Choice') } },
        }),
      completed,
    ),
  );
}
