// A browser whose person agrees to everything: `node browser.mjs URL` follows redirects.
await fetch(process.argv.at(-1)).then((response) => response.text());
