// Cancellation is inverted between the eras: the client's notification becomes the end of the server's response stream.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { agreeable } from './harness/client.mjs';
import { until } from './harness/process.mjs';
import { eliciting, releases } from './harness/releases.mjs';
import { deferred, LIMIT, world } from './harness/world.mjs';

const at = world();

for (const release of releases) {
  describe(`${release.name} (${release.version})`, () => {
    it('cancel of a running call: the server sees it, and the side effect never happens', LIMIT, async () => {
      const label = `running-${release.name}`;
      const peer = await at.connect(release);
      const abort = new AbortController();
      const call = peer.call('gate', { label }, { signal: abort.signal });
      await at.fixture.call('gate', (c) => c.args.label === label && c.outcome === 'running');
      abort.abort('enough');
      await assert.rejects(call);
      await at.fixture.call('gate', (c) => c.args.label === label && c.outcome === 'cancelled', 'the server to see the cancel');
      await at.fixture.command('open', { label });
      assert.deepEqual(peer.texts(await peer.call('echo', { text: 'still here' })), ['still here']);
      assert.equal((await at.fixture.effects())[`gate:${label}`], undefined);
    });

    it('cancel of one call leaves the other alone', LIMIT, async () => {
      const [gone, kept] = [`gone-${release.name}`, `kept-${release.name}`];
      const peer = await at.connect(release);
      const abort = new AbortController();
      const cancelled = peer.call('gate', { label: gone }, { signal: abort.signal });
      const running = peer.call('gate', { label: kept });
      for (const label of [gone, kept]) await at.fixture.call('gate', (c) => c.args.label === label);
      abort.abort();
      await assert.rejects(cancelled);
      await at.fixture.call('gate', (c) => c.args.label === gone && c.outcome === 'cancelled');
      await at.fixture.command('open', { label: kept });
      assert.deepEqual(peer.texts(await running), [`through ${kept}`]);
    });

    it('cancel while the model is asked: the question is withdrawn and the call never runs again', LIMIT, async () => {
      const prompt = `withdrawn-${release.name}`;
      const answer = deferred();
      const peer = await at.connect(release, { answers: { ...agreeable, sample: () => answer.promise } });
      const abort = new AbortController();
      const call = peer.call('sampling', { prompt }, { signal: abort.signal });
      await until(() => peer.asked.length === 1, 'the question');
      abort.abort();
      await assert.rejects(call);
      await until(() => peer.asked[0].withdrawn, 'the question to be withdrawn');
      answer.resolve(agreeable.sample());
      await peer.call('echo', { text: 'after' });
      assert.equal((await at.fixture.calls('sampling', (c) => c.args.prompt === prompt)).length, 1);
    });
  });
}

for (const release of eliciting) {
  describe(`${release.name} (${release.version}), asking a person`, () => {
    it('cancel while the user is asked: no side effect, ever', LIMIT, async () => {
      const subject = `asked-${release.name}`;
      const answer = deferred();
      const peer = await at.connect(release, { answers: { ...agreeable, elicit: () => answer.promise } });
      const abort = new AbortController();
      const call = peer.call('confirm', { subject }, { signal: abort.signal });
      await until(() => peer.asked.length === 1, 'the question');
      abort.abort();
      await assert.rejects(call);
      await until(() => peer.asked[0].withdrawn, 'the question to be withdrawn');
      answer.resolve({ action: 'accept', content: { sure: true } });
      await peer.call('echo', { text: 'after' });
      assert.equal((await at.fixture.calls('confirm', (c) => c.args.subject === subject)).length, 1);
      assert.equal((await at.fixture.effects())[`confirm:${subject}`], undefined);
    });

    it('cancel of the retry after an answer: the server sees it', LIMIT, async () => {
      const label = `retry-${release.name}`;
      const peer = await at.connect(release, { answers: { ...agreeable, elicit: () => ({ action: 'accept', content: { go: true } }) } });
      const abort = new AbortController();
      const call = peer.call('confirm-gate', { label }, { signal: abort.signal });
      await at.fixture.call('confirm-gate', (c) => c.args.label === label && c.answers && c.outcome === 'running');
      abort.abort();
      await assert.rejects(call);
      await at.fixture.call('confirm-gate', (c) => c.args.label === label && c.answers && c.outcome === 'cancelled');
      await at.fixture.command('open', { label });
      await peer.call('echo', { text: 'after' });
      assert.equal((await at.fixture.effects())[`confirm-gate:${label}`], undefined);
    });
  });
}
