// Node 20 has no fs.globSync, which the official suites import for a subcommand unused here.
// `node --import ./hook/register.mjs …` supplies the name, so that they load.
import { register } from 'node:module';

register('./resolve.mjs', import.meta.url);
