// Runs the end-to-end tests: `node run.mjs [FILE …]`. Builds the bridge once unless E2E_BRIDGE names one.
// E2E_REPORTER picks another reporter than "spec".
import { spawn } from 'node:child_process';
import { testFiles } from './harness/files.mjs';
import { bridgeBinary } from './harness/bridge.mjs';

const asked = process.argv.slice(2);
const files = asked.length > 0 ? asked : testFiles(['.', 'peers']);
const args = ['--test', '--test-concurrency=2', '--test-force-exit', '--test-reporter', process.env.E2E_REPORTER ?? 'spec', ...files];
const child = spawn(process.execPath, args, {
  cwd: import.meta.dirname,
  stdio: ['ignore', 'inherit', 'inherit'],
  env: { ...process.env, E2E_BRIDGE: await bridgeBinary() },
});
child.on('exit', (code) => process.exit(code ?? 1));
