// A real authorization server (oidc-provider) and a modern-only MCP server that takes its tokens, in one process. People agree at
// once. It registers clients, rotates refresh tokens, binds tokens to the resource, and names itself in its answers.
// `node issuer.mjs`; TOKEN_LIFE is that of access tokens, in seconds; with PAGES=on people are shown pages, on which they may also
// decline. With `node issuer.mjs URL` the MCP server is the one that is
// there. Prints {"url"} and serves counts at /counts.
import { createServer, request } from 'node:http';
import { createMcpHandler } from '@modelcontextprotocol/server';
import { toNodeHandler } from '@modelcontextprotocol/node';
import Provider from 'oidc-provider';
import { body } from './admin.mjs';
import { Fixture } from './fixture.mjs';

const life = Number(process.env.TOKEN_LIFE ?? 3600);
const http = createServer((req, res) => void handle(req, res).catch(() => res.destroy()));
await new Promise((resolve) => http.listen(0, '127.0.0.1', resolve));
const url = `http://127.0.0.1:${http.address().port}`;
const resource = `${url}/mcp`;
const counts = { authorize: 0, register: 0, token: 0, refused: 0 };

const provider = new Provider(url, {
  features: {
    registration: { enabled: true },
    deviceFlow: { enabled: true },
    revocation: { enabled: true },
    devInteractions: { enabled: false },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo: (_, asked) => {
        if (asked !== resource) throw new Error(`no resource ${asked}`);
        return { scope: 'tools:call', accessTokenFormat: 'opaque', accessTokenTTL: life };
      },
      useGrantedResource: () => true,
    },
  },
  clientDefaults: { token_endpoint_auth_method: 'none' },
  clientAuthMethods: ['none', 'client_secret_basic'],
  findAccount: (_, accountId) => ({ accountId, claims: () => ({ sub: accountId }) }),
  interactions: { url: (_, interaction) => `/agree/${interaction.uid}` },
  issueRefreshToken: (_, client) => client.grantTypeAllowed('refresh_token'),
  rotateRefreshToken: true,
  pkce: { required: () => true },
  cookies: { keys: ['only a test'] },
});

const page = `<!doctype html><html lang="en"><title>Example</title><main><h1>Example asks</h1><form method="post">
<button name="answer" value="agree">Agree</button> <button name="answer" value="decline">Decline</button></form></main>`;

/** What a person does: signs in, and agrees to everything. */
async function agree(req, res) {
  const { prompt, params, session } = await provider.interactionDetails(req, res);
  if (process.env.PAGES && req.method === 'GET') return res.writeHead(200, { 'content-type': 'text/html' }).end(page);
  if (process.env.PAGES && (await body(req)).includes('decline')) {
    return provider.interactionFinished(req, res, { error: 'access_denied', error_description: 'the person declined' });
  }
  if (prompt.name === 'login') return provider.interactionFinished(req, res, { login: { accountId: 'ada' } });
  const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  grant.addOIDCScope('openid offline_access');
  grant.addResourceScope(resource, 'tools:call');
  return provider.interactionFinished(req, res, { consent: { grantId: await grant.save() } });
}

const fixture = new Fixture();
const behind = process.argv[2];
const serveMcp = behind ? handOn : toNodeHandler(createMcpHandler(fixture.create, { legacy: 'reject', keepAliveMs: 0 }));

/** Hands a request on to the server that is there. */
function handOn(req, res) {
  const { authorization, host, ...headers } = req.headers;
  const next = request(behind, { method: req.method, headers }, (answer) => {
    res.writeHead(answer.statusCode, answer.headers);
    res.flushHeaders();
    answer.pipe(res);
  });
  next.on('error', () => res.destroy());
  res.on('close', () => next.destroy());
  req.pipe(next);
}

async function mcp(req, res) {
  const token = await provider.AccessToken.find(req.headers.authorization?.replace('Bearer ', '') ?? '');
  if (token?.aud !== resource || token.isExpired) {
    counts.refused++;
    const metadata = `${url}/.well-known/oauth-protected-resource/mcp`;
    res.writeHead(401, { 'www-authenticate': `Bearer resource_metadata="${metadata}", scope="tools:call"` }).end();
    return;
  }
  await serveMcp(req, res);
}

const json = (res, value) => res.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(value));

async function handle(req, res) {
  const { pathname } = new URL(req.url, url);
  if (pathname === '/mcp') return mcp(req, res);
  if (pathname === '/counts') return json(res, counts);
  if (pathname === '/.well-known/oauth-protected-resource/mcp') return json(res, { resource, authorization_servers: [url], scopes_supported: ['tools:call'] });
  if (pathname.startsWith('/agree/')) return agree(req, res);
  if (pathname === '/.well-known/oauth-authorization-server') req.url = '/.well-known/openid-configuration';
  if (pathname === '/auth') counts.authorize++;
  if (pathname === '/reg') counts.register++;
  if (pathname === '/token') counts.token++;
  return provider.callback()(req, res);
}

process.stdout.write(`${JSON.stringify({ url: resource })}\n`);
