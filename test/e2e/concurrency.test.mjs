// Calls and clients at once: nothing of one may reach another.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { agreeable } from './harness/client.mjs';
import { until } from './harness/process.mjs';
import { eliciting, newest, releases } from './harness/releases.mjs';
import { deferred, LIMIT, world } from './harness/world.mjs';

const at = world();

for (const release of releases) {
  describe(`${release.name} (${release.version})`, () => {
    it('two concurrent calls get their own results, in whatever order they end', LIMIT, async () => {
      const peer = await at.connect(release);
      const labels = [`first-${release.name}`, `second-${release.name}`];
      const ended = [];
      const calls = labels.map((label) => peer.watch('gate', { label }).then(({ result }) => (ended.push(label), result)));
      for (const label of labels) await at.fixture.call('gate', (c) => c.args.label === label);
      await at.fixture.command('open', { label: labels[1] });
      await calls[1];
      await at.fixture.command('open', { label: labels[0] });
      const results = await Promise.all(calls);
      assert.deepEqual(results.map((r) => peer.texts(r)[0]), labels.map((label) => `through ${label}`));
      assert.deepEqual(ended, [labels[1], labels[0]]);
    });

    it('two clients at once each answer their own question', LIMIT, async () => {
      const gate = deferred();
      const answers = (who) => ({
        ...agreeable,
        sample: async () => {
          await gate.promise;
          return { role: 'assistant', model: who, content: { type: 'text', text: `I am ${who}` } };
        },
      });
      const peers = await Promise.all(['ann', 'bob'].map((who) => at.connect(release, { name: who, answers: answers(who) })));
      const calls = peers.map((peer, i) => peer.call('sampling', { prompt: `for ${i}-${release.name}` }));
      await until(() => peers.every((peer) => peer.asked.length === 1), 'both clients to be asked');
      gate.resolve();
      const results = await Promise.all(calls);
      assert.deepEqual(results.map((r, i) => peers[i].json(r).answer.model), ['ann', 'bob']);
      peers.forEach((peer, i) => assert.deepEqual(peer.asked.map((a) => a.params.messages[0].content.text), [`for ${i}-${release.name}`]));
    });
  });
}

for (const release of eliciting) {
  describe(`${release.name} (${release.version}), two conversations in one client`, () => {
    it('two concurrent calls over two rounds keep their own state and answers (D-I8)', LIMIT, async () => {
      const held = [];
      const answers = { ...agreeable, elicit: (params) => new Promise((resolve) => held.push({ params, resolve })) };
      const peer = await at.connect(release, { answers });
      const labels = [`x-${release.name}`, `y-${release.name}`];
      const calls = labels.map((label) => peer.call('two-rounds', { label }));
      const taken = () => held.splice(0);

      await until(() => held.length === 2, 'both names to be asked');
      for (const { params, resolve } of taken()) resolve({ action: 'accept', content: { name: `name of ${params.message[0]}` } });
      await until(() => held.length === 2, 'both colours to be asked');
      for (const { params, resolve } of taken()) resolve({ action: 'accept', content: { colour: params.message.startsWith('x') ? 'red' : 'green' } });

      const results = (await Promise.all(calls)).map((r) => peer.json(r));
      assert.deepEqual(results, [
        { label: labels[0], name: 'name of x', colour: 'red', keys: ['colour'] },
        { label: labels[1], name: 'name of y', colour: 'green', keys: ['colour'] },
      ]);
    });

    it('two clients with the same question and the same ids get their own answers', LIMIT, async () => {
      const held = { ann: deferred(), bob: deferred() };
      const answers = (who) => ({ ...agreeable, elicit: () => held[who].promise });
      const [ann, bob] = [
        await at.connect(release, { name: 'ann', answers: answers('ann') }),
        await at.connect(release, { name: 'bob', answers: answers('bob') }),
      ];
      const subject = `same-${release.name}`;
      const calls = [ann.call('confirm', { subject }), bob.call('confirm', { subject })];
      await until(() => ann.asked.length === 1 && bob.asked.length === 1, 'both to be asked');
      held.bob.resolve({ action: 'decline' });
      assert.deepEqual(bob.json(await calls[1]).answer, { action: 'decline' });
      held.ann.resolve({ action: 'accept', content: { sure: true, note: 'from ann' } });
      assert.deepEqual(ann.json(await calls[0]).answer, { action: 'accept', content: { sure: true, note: 'from ann' } });
    });
  });
}

it('many clients and many calls at once stay apart', { timeout: 60_000 }, async () => {
  const answers = (who) => ({
    ...agreeable,
    elicit: ({ message }) => ({ action: 'accept', content: message.includes('colour') ? { colour: who % 2 ? 'red' : 'green' } : { name: `${who}` } }),
  });
  const peers = await Promise.all(Array.from({ length: 8 }, (_, who) => at.connect(newest, { name: `c${who}`, answers: answers(who) })));
  await Promise.all(
    peers.map(async (peer, who) => {
      const calls = Array.from({ length: 5 }, (_, n) => peer.call('two-rounds', { label: `m-${who}-${n}` }));
      const results = (await Promise.all(calls)).map((r) => peer.json(r));
      results.forEach((result, n) =>
        assert.deepEqual(result, { label: `m-${who}-${n}`, name: `${who}`, colour: who % 2 ? 'red' : 'green', keys: ['colour'] }),
      );
    }),
  );
});
