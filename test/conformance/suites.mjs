// What is run: each suite with its scenarios' source, revision and target.

const SUITE_02 = 'node_modules/@modelcontextprotocol/conformance/dist/index.js';
const SUITE_01 = 'node_modules/conformance-0.1/dist/index.js';

const server = (key, bin, version, target = 'bridge') => ({ key, bin, target, args: ['server', '--suite', 'all', '--spec-version', version] });

/** Suites against a server: the fixture itself first, then the bridge in front of it; the same for the Go SDK's. */
export const serverSuites = [
  server('fixture alone, 0.2.0-alpha.12 at 2026-07-28', SUITE_02, '2026-07-28', 'fixture'),
  server('server 0.1.16 at 2025-11-25', SUITE_01, '2025-11-25', 'bridge-polling'),
  server('server 0.1.16 at 2025-06-18', SUITE_01, '2025-06-18'),
  server('server 0.2.0-alpha.12 at 2025-11-25', SUITE_02, '2025-11-25', 'bridge-polling'),
  server('server 0.2.0-alpha.12 at 2025-06-18', SUITE_02, '2025-06-18'),
  server('Go SDK server alone, 0.2.0-alpha.12 at 2026-07-28', SUITE_02, '2026-07-28', 'go'),
  server('Go SDK server 0.1.16 at 2025-11-25', SUITE_01, '2025-11-25', 'bridge-go'),
  server('Go SDK server 0.1.16 at 2025-06-18', SUITE_01, '2025-06-18', 'bridge-go'),
  server('Go SDK server 0.2.0-alpha.12 at 2025-11-25', SUITE_02, '2025-11-25', 'bridge-go'),
  server('Go SDK server 0.2.0-alpha.12 at 2025-06-18', SUITE_02, '2025-06-18', 'bridge-go'),
  server('Go SDK server over stdio 0.2.0-alpha.12 at 2025-11-25', SUITE_02, '2025-11-25', 'bridge-go-stdio'),
];

/** Clients that declare nothing, against the bridge that asks elsewhere: peers/mute.mjs plays them in the place of a suite. */
export const muteSuites = [{ key: 'clients that declare nothing, at 2024-11-05 and 2025-06-18', bin: 'peers/mute.mjs', args: [], target: 'fixture' }];

const client = (key, scenarios, flags = [], version = '2026-07-28') => ({ key, bin: SUITE_02, scenarios, flags, version });

const authorization = [
  'metadata-default',
  'metadata-var1',
  'metadata-var2',
  'metadata-var3',
  'basic-cimd',
  'scope-from-www-authenticate',
  'scope-from-scopes-supported',
  'scope-omitted-when-undefined',
  'scope-step-up',
  'scope-retry-limit',
  'token-endpoint-auth-basic',
  'token-endpoint-auth-post',
  'token-endpoint-auth-none',
  'pre-registration',
  'resource-mismatch',
  'offline-access-scope',
  'offline-access-not-supported',
  'authorization-server-migration',
  'iss-supported',
  'iss-not-advertised',
  'iss-supported-missing',
  'iss-wrong-issuer',
  'iss-unexpected',
  'iss-normalized',
  'metadata-issuer-mismatch',
].map((name) => `auth/${name}`);

/** The client suite at 2026-07-28 with the bridge as the client under test, driven by a legacy client. */
export const clientSuites = [
  client('client 0.2.0-alpha.12 at 2026-07-28', [
    'tools_call',
    'request-metadata',
    'sep-2322-client-request-state',
    'http-standard-headers',
    'http-custom-headers',
    'http-invalid-tool-headers',
    'json-schema-ref-no-deref',
    'json-schema-2020-12-preservation',
  ]),
  // A client of 2024-11-05 that declares nothing; a person answers on the page, in Chromium.
  client('client that declares nothing 0.2.0-alpha.12 at 2026-07-28', ['sep-2322-client-request-state', 'tools_call'], ['--mute']),
  // The legacy client authorizes itself; the bridge lets challenges down and tokens up.
  client('client authorization 0.2.0-alpha.12 at 2026-07-28', authorization),
  // The same in front of servers of 2025-03-26, which are their own authorization servers: with metadata at the root, and without any.
  client(
    'client authorization 0.2.0-alpha.12 at 2025-03-26',
    ['auth/2025-03-26-oauth-metadata-backcompat', 'auth/2025-03-26-oauth-endpoint-fallback'],
    [],
    '2025-03-26',
  ),
  // The legacy client knows nothing of authorization; the bridge signs in for it.
  client(
    'client sign-in 0.2.0-alpha.12 at 2026-07-28',
    [...authorization, 'auth/client-credentials-basic', 'auth/client-credentials-jwt', 'auth/enterprise-managed-authorization'],
    ['--agent'],
  ),
];
