// A person with a browser, who answers what the bridge asks on its page.
import { chromium } from 'playwright-core';

export async function person() {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--headless=new', '--no-sandbox'] });
  const context = await browser.newContext({ javaScriptEnabled: false });
  let last = Promise.resolve(); // a person does one thing at a time
  return { close: () => browser.close(), answer: (link) => (last = last.catch(() => {}).then(() => answer(context, link))) };
}

/** Opens a link, fills in what is empty, and sends the form. */
async function answer(context, link) {
  const page = await context.newPage();
  await page.goto(link);
  for (const input of await page.locator('form input:not([type=hidden]):not([type=checkbox])').all()) {
    if ((await input.inputValue()) === '') await input.fill((await input.getAttribute('type')) === 'email' ? 'ada@example.com' : 'Ada');
  }
  for (const select of await page.locator('form select').all()) {
    if ((await select.inputValue()) === '') await select.selectOption({ index: 1 });
  }
  for (const set of await page.locator('form fieldset').all()) {
    if ((await set.locator('input:checked').count()) === 0) await set.locator('input').first().check();
  }
  for (const box of await page.locator('form .check input').all()) await box.check();
  await page.getByRole('button', { name: /^(Send|Approve)$/ }).click();
  await page.getByRole('heading', { name: 'Thank you' }).waitFor();
  await page.close();
}

const LINK = /http:\/\/127\.0\.0\.1:\d+\/questions\/q\/\w+/;

/** Makes a request until it is done, as a model does: shows the person the page that an answer names, and calls again. */
export async function insist(someone, request) {
  for (let round = 0; round < 6; round++) {
    const outcome = await request().catch((error) => ({ isError: true, content: [{ type: 'text', text: error.message }] }));
    const link = outcome.isError && LINK.exec(outcome.content[0].text)?.[0];
    if (!link) return outcome;
    await someone.answer(link);
  }
  throw new Error('the bridge asks without end');
}

/** Has a client of the SDK speak an older revision than it would: what it says of itself is rewritten on its way. */
export const speaking = (version) => (url, init) =>
  fetch(url, { ...init, body: init?.body?.replace(/"protocolVersion":"[\d-]+"/, `"protocolVersion":"${version}"`) });
