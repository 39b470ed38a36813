// The flags with which the bridge signs in to the suite's mock servers, as a person would set them.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const DOCUMENT = 'https://conformance-test.local/client-metadata.json';

/** Who gives secrets for a mock server: the suite does not say it, and the bridge wants to be told. */
async function issuerOf(server) {
  const { origin, pathname } = new URL(server);
  for (const path of [pathname, '']) {
    const response = await fetch(`${origin}/.well-known/oauth-protected-resource${path}`);
    if (response.ok) return (await response.json()).authorization_servers[0];
  }
  throw new Error(`${server} names no authorization server`);
}

export async function agentFlags(context, server) {
  const dir = mkdtempSync(join(tmpdir(), 'bridge-agent-'));
  process.on('exit', () => rmSync(dir, { recursive: true, force: true }));
  const file = (name, text) => {
    writeFileSync(join(dir, name), text, { mode: 0o600 });
    return join(dir, name);
  };
  const flags = {
    mode: 'agent',
    store: 'file',
    dir: join(dir, 'auth'),
    browser: `${process.execPath} ${join(import.meta.dirname, 'browser.mjs')}`,
    wait: '50s',
    'client-id': context.client_id ?? DOCUMENT,
  };
  if (context.client_secret) {
    flags['client-secret-file'] = file('secret', context.client_secret);
    flags.issuer = await issuerOf(server);
  }
  if (context.private_key_pem) flags['client-key'] = file('key.pem', context.private_key_pem);
  if (context.name?.startsWith('auth/client-credentials')) flags.grant = 'client-credentials';
  if (context.idp_issuer) {
    Object.assign(flags, {
      grant: 'enterprise',
      'idp.issuer': context.idp_issuer,
      'idp.client-id': context.idp_client_id,
      'idp.token-file': file('id-token', context.idp_id_token),
    });
  }
  return Object.entries(flags).flatMap(([name, value]) => [`--auth.${name}`, value]);
}
