// Judges a suite by the checks it wrote, against the baseline of reasoned exceptions.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** All scenarios that left their checks under `dir`: name → checks. A suite's own verdict is not taken on trust. */
export function readChecks(dir) {
  const scenarios = new Map();
  for (const path of readdirSync(dir, { recursive: true }).filter((name) => name.endsWith('checks.json'))) {
    const name = path.replace(/\/checks\.json$/, '').replace(/^server-/, '').replace(/-\d{4}-\d\d-\d\dT[\d-]+Z$/, '');
    scenarios.set(name, JSON.parse(readFileSync(join(dir, path), 'utf8')));
  }
  return scenarios;
}

/** Warnings count: where one is right, the baseline says why. */
export const isBad = ({ status }) => status === 'FAILURE' || status === 'WARNING';

/**
 * Judges one suite. A scenario passes when no check failed or warned; exceptions are per check and must be needed:
 * one that no longer occurs is an error too.
 */
export function judge(key, scenarios, baseline) {
  const excepted = baseline[key] ?? {};
  const lines = [];
  let passed = 0, exceptions = 0;
  for (const [name, checks] of [...scenarios].sort()) {
    const reasons = excepted[name] ?? {};
    const bad = checks.filter(isBad);
    const unexpected = bad.filter((check) => !(check.id in reasons));
    const stale = Object.keys(reasons).filter((id) => !bad.some((check) => check.id === id));
    for (const check of unexpected) lines.push(`  ${check.status} ${name}: ${check.id}: ${check.errorMessage ?? check.description}`);
    for (const id of stale) lines.push(`  STALE ${name}: ${id} is excepted but did not occur`);
    if (unexpected.length === 0 && stale.length === 0) passed++;
    if (bad.length > 0 && unexpected.length === 0) exceptions++;
  }
  for (const name of Object.keys(excepted)) if (!scenarios.has(name)) lines.push(`  STALE ${name}: excepted but not run`);
  return { key, passed, total: scenarios.size, exceptions, lines, ok: lines.length === 0 && scenarios.size > 0 };
}
