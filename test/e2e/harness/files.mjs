// The test files of this suite, without the globbing that Node 20 lacks.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const HERE = fileURLToPath(new URL('..', import.meta.url));

/** All *.test.mjs directly in the given directories of test/e2e, sorted. */
export function testFiles(directories) {
  return directories.flatMap((dir) =>
    readdirSync(join(HERE, dir))
      .filter((name) => name.endsWith('.test.mjs'))
      .sort()
      .map((name) => join(dir, name)),
  );
}
