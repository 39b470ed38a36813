// The fixture over stdio, driven by a modern client: what fails here is the fixture's fault.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { adminOf } from '../harness/fixture.mjs';
import { until } from '../harness/process.mjs';

it('serves a modern client over stdio and keeps its record', { timeout: 20_000 }, async () => {
  const dir = mkdtempSync(join(tmpdir(), 'bridge-peer-'));
  const file = join(dir, 'admin.json');
  const client = new Client({ name: 'modern', version: '1' }, { versionNegotiation: { mode: { pin: '2026-07-28' } } });
  const server = fileURLToPath(new URL('stdio.mjs', import.meta.url));
  try {
    await client.connect(new StdioClientTransport({ command: process.execPath, args: [server], env: { ...process.env, FIXTURE_ADMIN_FILE: file }, stderr: 'ignore' }));
    const fixture = adminOf(() => JSON.parse(readFileSync(file, 'utf8')).admin);
    assert.equal((await client.callTool({ name: 'echo', arguments: { text: 'hi' } })).content[0].text, 'hi');
    assert.equal((await fixture.effects()).echo, 1);

    const changes = [];
    client.setNotificationHandler('notifications/resources/updated', (n) => void changes.push(n.params.uri));
    await client.listen({ resourceSubscriptions: ['memo://counter'] });
    await fixture.command('update-counter');
    await until(() => changes.length === 1, 'the update');

    const abort = new AbortController();
    const call = client.callTool({ name: 'gate', arguments: { label: 's' } }, { signal: abort.signal });
    await fixture.call('gate', (c) => c.outcome === 'running');
    abort.abort();
    await assert.rejects(call);
    await fixture.call('gate', (c) => c.outcome === 'cancelled');
  } finally {
    await client.close();
    rmSync(dir, { recursive: true, force: true });
  }
});
