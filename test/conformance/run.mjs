// Runs the official conformance suites: `node run.mjs [WORD …]` runs those whose name contains a word.
// Results stay in a temporary directory, which is printed when something failed.
import { spawn } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bridgeBinary } from '../e2e/harness/bridge.mjs';
import { Targets } from './targets.mjs';
import { clientSuites, muteSuites, serverSuites } from './suites.mjs';
import { isBad, judge, readChecks } from './verdict.mjs';

const HERE = import.meta.dirname;
const SUITE_LIMIT_MS = 240_000;
const words = process.argv.slice(2);
const wanted = ({ key }) => words.length === 0 || words.some((word) => key.includes(word));
const baseline = JSON.parse(readFileSync(join(HERE, 'baseline.json'), 'utf8'));
const results = mkdtempSync(join(tmpdir(), 'bridge-conformance-'));

process.env.E2E_BRIDGE = await bridgeBinary();

/** Runs one invocation of a suite with the loader hook; resolves with its exit code. What it prints goes to output.txt. */
function suite(bin, args, outputDir) {
  mkdirSync(outputDir, { recursive: true });
  const child = spawn(process.execPath, ['--import', './hook/register.mjs', bin, ...args, '-o', outputDir], {
    cwd: HERE,
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: SUITE_LIMIT_MS,
    killSignal: 'SIGKILL',
  });
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => appendFileSync(join(outputDir, 'output.txt'), chunk));
  return new Promise((resolve) => child.on('close', resolve));
}

async function runServerSuites() {
  const running = new Targets();
  const verdicts = [];
  try {
    for (const { key, bin, args, target } of [...serverSuites, ...muteSuites].filter(wanted)) {
      const dir = join(results, key.replaceAll(/[^\w.-]+/g, '_'));
      await suite(bin, [...args, '--url', await running.url(target)], dir);
      verdicts.push(report(judge(key, readChecks(dir), baseline)));
    }
  } finally {
    await running.stop();
  }
  return verdicts;
}

async function runClientSuite({ key, bin, scenarios: names, flags, version }) {
  const dir = join(results, key.replaceAll(/[^\w.-]+/g, '_'));
  const pending = [...names];
  const exits = new Map();
  const worker = async () => {
    for (let name; (name = pending.shift()); ) {
      const args = ['client', '--command', ['node peers/legacy-client.mjs', ...flags].join(' '), '--scenario', name, '--spec-version', version];
      exits.set(name, await suite(bin, args, dir));
    }
  };
  await Promise.all([worker(), worker()]);
  const scenarios = readChecks(dir);
  for (const name of names) {
    const checks = scenarios.get(name) ?? [];
    // A client that failed or hung fails its scenario, whatever its checks say; the suite knows where failing is right.
    const silent = exits.get(name) !== 0 && !checks.some(isBad);
    scenarios.set(name, silent ? [...checks, { id: 'client-run', status: 'FAILURE', description: 'the client did not end well' }] : checks);
  }
  return report(judge(key, scenarios, baseline));
}

function report(verdict) {
  process.stdout.write(`${summary(verdict)}\n${verdict.lines.map((line) => `${line}\n`).join('')}`);
  return verdict;
}

function summary({ key, passed, total, exceptions }) {
  const excepted = exceptions > 0 ? ` (${exceptions} with exceptions of baseline.json)` : '';
  return `${key}: ${passed}/${total}${excepted}`;
}

const verdicts = await runServerSuites();
for (const client of clientSuites.filter(wanted)) verdicts.push(await runClientSuite(client));
const failed = verdicts.filter(({ ok }) => !ok).length;
process.stdout.write(`\nConformance\n${verdicts.map((verdict) => `  ${summary(verdict)}\n`).join('')}`);
const scenarios = verdicts.reduce((sum, { passed, total }) => ({ passed: sum.passed + passed, total: sum.total + total }), { passed: 0, total: 0 });
process.stdout.write(`${scenarios.passed} passed, ${scenarios.total - scenarios.passed} failed\n`);
if (failed === 0 && verdicts.length > 0) rmSync(results, { recursive: true, force: true });
else process.stdout.write(`results: ${results}\n`);
process.exit(failed === 0 && verdicts.length > 0 ? 0 : 1);
