// What is run: each suite with its scenarios' source, revision and target.

const SUITE_02 = 'node_modules/@modelcontextprotocol/conformance/dist/index.js';
const SUITE_01 = 'node_modules/conformance-0.1/dist/index.js';

const server = (key, bin, version, target = 'bridge') => ({ key, bin, target, args: ['server', '--suite', 'all', '--spec-version', version] });

/** Suites against a server: the fixture itself first, then the bridge in front of it. */
export const serverSuites = [
  server('fixture alone, 0.2.0-alpha.12 at 2026-07-28', SUITE_02, '2026-07-28', 'fixture'),
  server('server 0.1.16 at 2025-11-25', SUITE_01, '2025-11-25'),
  server('server 0.1.16 at 2025-06-18', SUITE_01, '2025-06-18'),
  server('server 0.2.0-alpha.12 at 2025-11-25', SUITE_02, '2025-11-25'),
  server('server 0.2.0-alpha.12 at 2025-06-18', SUITE_02, '2025-06-18'),
];

/** Scenarios of the client suite at 2026-07-28 that concern a client without authorization and without extensions. */
export const clientSuite = {
  key: 'client 0.2.0-alpha.12 at 2026-07-28',
  bin: SUITE_02,
  scenarios: [
    'tools_call',
    'request-metadata',
    'sep-2322-client-request-state',
    'http-standard-headers',
    'http-custom-headers',
    'http-invalid-tool-headers',
    'json-schema-ref-no-deref',
    'json-schema-2020-12-preservation',
  ],
};
