// A browser without a screen: `node browser.mjs URL` follows redirects and keeps cookies. Its person agrees to everything. With
// BROWSER_FILE it only notes the address there, as a tab that nobody has looked at yet.
import { appendFileSync } from 'node:fs';

/** Opens a page and resolves with the text at which it ended. */
export async function browse(page) {
  const cookies = new Map();
  for (let at = page, hops = 0; hops < 20; hops++) {
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(at, { redirect: 'manual', headers: cookie ? { cookie } : {} });
    for (const set of response.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(set);
      cookies.set(name, value);
    }
    const text = await response.text();
    const location = response.headers.get('location');
    if (!location) return text;
    at = new URL(location, at).href;
  }
  throw new Error('the page never ended');
}

if (process.argv[1] === import.meta.filename) {
  if (process.env.BROWSER_FILE) appendFileSync(process.env.BROWSER_FILE, `${process.argv.at(-1)}\n`);
  else await browse(process.argv.at(-1));
}
