// One modern-only server, whatever it is served over. Instances are made per request (HTTP) or per process (stdio);
// the record and the surface that admin commands change outlive them.
import { randomBytes } from 'node:crypto';
import { createRequestStateCodec, McpServer } from '@modelcontextprotocol/server';
import * as z from 'zod/v4';
import { Record } from './record.mjs';
import { registerPlainTools, text } from './tools-plain.mjs';
import { registerAskingTools } from './tools-asking.mjs';
import { paginateResources, registerPrompts, registerResources } from './prompts-resources.mjs';

const CAPABILITIES = {
  tools: { listChanged: true },
  prompts: { listChanged: true },
  resources: { listChanged: true, subscribe: true },
  logging: {},
  completions: {},
};

export class Fixture {
  record = new Record();
  surface = { counter: 0, extraTools: new Set(), requireToken: undefined };
  #codec = createRequestStateCodec({ key: randomBytes(32), bind: (ctx) => ctx.mcpReq.method });

  /** The factory that both entries of the SDK take. */
  create = () => {
    const server = new McpServer(
      { name: 'fixture', version: '1.2.3', title: 'Fixture server' },
      { capabilities: CAPABILITIES, instructions: 'Ask away.', requestState: { verify: this.#codec.verify } },
    );
    registerPlainTools(server, this.record);
    registerAskingTools(server, this.record, (payload, ctx) => this.#codec.mint(payload, ctx));
    registerPrompts(server, this.record);
    registerResources(server, this.record, this.surface);
    paginateResources(server);
    for (const name of this.surface.extraTools) {
      server.registerTool(name, { description: 'came later', inputSchema: z.object({}) }, this.record.tracked(name, async () => text(name)));
    }
    return server;
  };
}
