// Answers the suites' own import of "fs" with a module that has the missing name; every other import is left alone.
const SUITE = /\/node_modules\/(@modelcontextprotocol\/conformance|conformance-0\.1)\/dist\//;

export async function resolve(specifier, context, next) {
  const asked = specifier === 'fs' || specifier === 'node:fs';
  if (asked && SUITE.test(context.parentURL ?? '')) return { url: new URL('./fs.mjs', import.meta.url).href, shortCircuit: true };
  return next(specifier, context);
}
