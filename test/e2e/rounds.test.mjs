// A legacy client answers what an MRTR-only server asks. Each answer is looked up in the server's own record.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { agreeable } from './harness/client.mjs';
import { eliciting, releases } from './harness/releases.mjs';
import { LIMIT, world } from './harness/world.mjs';

const at = world();

/** Answers of a user who gives `content` to every form. */
const saying = (content) => ({ ...agreeable, elicit: () => ({ action: 'accept', content }) });

for (const release of eliciting) {
  describe(`${release.name} (${release.version}) is asked by form`, () => {
    it('elicitation accepted: the content reaches the server', LIMIT, async () => {
      const subject = `accept-${release.name}`;
      const peer = await at.connect(release, { answers: saying({ sure: true, note: 'ünïcode ✓ "quoted"' }) });
      const result = peer.json(await peer.call('confirm', { subject }));
      assert.deepEqual(result.answer, { action: 'accept', content: { sure: true, note: 'ünïcode ✓ "quoted"' } });

      const [first, retry, ...more] = await at.fixture.calls('confirm', (c) => c.args.subject === subject);
      assert.deepEqual(more, []);
      assert.equal(first.outcome, 'input_required');
      assert.deepEqual(retry.answers, { confirm: { action: 'accept', content: { sure: true, note: 'ünïcode ✓ "quoted"' } } });
      assert.notEqual(retry.id, first.id, 'D-I1: every round has its own id');
      assert.deepEqual(retry.args, first.args, 'D-I2: the retry repeats the original request');
      assert.equal((await at.fixture.effects())[`confirm:${subject}`], 1);
    });

    it('the question reaches the user as it was asked', LIMIT, async () => {
      const peer = await at.connect(release, { answers: saying({ sure: true }) });
      await peer.call('confirm', { subject: 'wording' });
      const [{ params }] = peer.asked;
      assert.equal(params.message, 'Go ahead with wording?');
      assert.deepEqual(Object.keys(params.requestedSchema.properties), ['sure', 'note']);
      assert.deepEqual(params.requestedSchema.required, ['sure']);
    });

    for (const action of ['decline', 'cancel']) {
      it(`elicitation answered by ${action}: the server is told and nothing happens`, LIMIT, async () => {
        const subject = `${action}-${release.name}`;
        const peer = await at.connect(release, { answers: { ...agreeable, elicit: () => ({ action }) } });
        const result = peer.json(await peer.call('confirm', { subject }));
        assert.deepEqual(result.answer, { action });
        const runs = await at.fixture.calls('confirm', (c) => c.args.subject === subject);
        assert.deepEqual(runs.at(-1).answers, { confirm: { action } });
        assert.equal((await at.fixture.effects())[`confirm:${subject}`], undefined);
      });
    }

    it('an error instead of an answer is a cancel for the server (F.3)', LIMIT, async () => {
      const subject = `error-${release.name}`;
      const broken = () => {
        throw new Error('the user interface is broken');
      };
      const peer = await at.connect(release, { answers: { ...agreeable, elicit: broken } });
      assert.deepEqual(peer.json(await peer.call('confirm', { subject })).answer, { action: 'cancel' });
      assert.equal((await at.fixture.effects())[`confirm:${subject}`], undefined);
    });

    it('two rounds with HMAC-protected state', LIMIT, async () => {
      const label = `two-${release.name}`;
      const contents = [{ name: 'Ada' }, { colour: 'green' }];
      const peer = await at.connect(release, { answers: { ...agreeable, elicit: () => ({ action: 'accept', content: contents.shift() }) } });
      const result = peer.json(await peer.call('two-rounds', { label }));
      assert.deepEqual(result, { label, name: 'Ada', colour: 'green', keys: ['colour'] });
      assert.deepEqual(peer.asked.map((a) => a.params.message), [`${label}: your name?`, `${label}: Ada, your colour?`]);

      const runs = await at.fixture.calls('two-rounds', (c) => c.args.label === label);
      assert.deepEqual(runs.map((run) => run.state?.step ?? 0), [0, 1, 2]);
      assert.deepEqual(runs.map((run) => Object.keys(run.answers ?? {})), [[], ['name'], ['colour']], 'D-I6: only answers of the current round');
      assert.equal(new Set(runs.map((run) => run.id)).size, 3);
    });

    it('state that a round does not repeat stays away (D-I4)', LIMIT, async () => {
      const peer = await at.connect(release, { answers: saying({ ok: true }) });
      assert.deepEqual(peer.json(await peer.call('state-dropped')), { stateInLastRound: null, keys: ['last'] });
    });

    it('three inputs in one round: all three answers come back together', LIMIT, async () => {
      const label = `three-${release.name}`;
      const peer = await at.connect(release, { answers: saying({ who: 'everyone' }) });
      const { answers } = peer.json(await peer.call('three', { label }));
      assert.deepEqual(answers.who, { action: 'accept', content: { who: 'everyone' } });
      assert.equal(answers.model.content.text, 'model says hi');
      assert.equal(answers.roots.roots[0].uri, 'file:///work');
      assert.deepEqual(peer.asked.map((a) => a.kind).sort(), ['elicit', 'roots', 'sample']);
      const runs = await at.fixture.calls('three', (c) => c.args.label === label);
      assert.equal(runs.length, 2);
      assert.deepEqual(Object.keys(runs[1].answers).sort(), ['model', 'roots', 'who'], 'D-I7: every key asked is answered');
    });

    it('prompts/get with elicitation', LIMIT, async () => {
      const peer = await at.connect(release, { answers: saying({ tone: 'kind' }) });
      const prompt = await peer.client.getPrompt({ name: 'ask', arguments: { topic: release.name } });
      assert.deepEqual(JSON.parse(prompt.messages[0].content.text), { topic: release.name, answer: { action: 'accept', content: { tone: 'kind' } } });
      const runs = await at.fixture.calls('ask', (c) => c.args.topic === release.name);
      assert.deepEqual(runs.map((run) => run.outcome), ['input_required', 'completed']);
    });

    it('resources/read with elicitation', LIMIT, async () => {
      const peer = await at.connect(release, { answers: saying({ word: `swordfish ${release.name}` }) });
      const read = await peer.client.readResource({ uri: 'memo://ask' });
      assert.deepEqual(JSON.parse(read.contents[0].text).answer.content, { word: `swordfish ${release.name}` });
      assert.equal((await at.fixture.calls('ask', (c) => c.answers?.secret?.content.word === `swordfish ${release.name}`)).length, 1);
    });

    it('enum variants are asked in the words of the revision', LIMIT, async () => {
      const titled = release.urls
        ? { plain: 'a', titled: 'g', many: ['x', 'y'] }
        : { plain: 'a', titled: 'g', many__1: true, many__2: true };
      const peer = await at.connect(release, {
        answers: {
          ...agreeable,
          elicit: ({ requestedSchema }) => {
            // 2025-06-18 has no arrays: whatever the bridge named the options, all of them are ticked.
            const booleans = Object.keys(requestedSchema.properties).filter((key) => requestedSchema.properties[key].type === 'boolean');
            const ticked = Object.fromEntries(booleans.map((key) => [key, true]));
            return { action: 'accept', content: release.urls ? titled : { plain: 'a', titled: 'g', ...ticked } };
          },
        },
      });
      const { answer } = peer.json(await peer.call('choices'));
      assert.deepEqual(answer.content, { plain: 'a', titled: 'g', many: ['x', 'y'] });
      const schema = peer.asked[0].params.requestedSchema;
      if (!release.urls) assert.deepEqual(schema.properties.titled.enumNames, ['Red', 'Green']);
    });
  });
}

for (const release of releases) {
  describe(`${release.name} (${release.version}) is asked for what it declares`, () => {
    it('a state-only round is repeated without the user', LIMIT, async () => {
      const peer = await at.connect(release);
      assert.deepEqual(peer.json(await peer.call('state-only', { rounds: 2 })), { done: 2, answers: null });
      assert.deepEqual(peer.asked, []);
    });

    it('sampling: the model’s message reaches the server', LIMIT, async () => {
      const prompt = `prompt of ${release.name}`;
      const peer = await at.connect(release);
      const { answer } = peer.json(await peer.call('sampling', { prompt }));
      assert.equal(answer.content.text, 'model says hi');
      assert.equal(answer.model, 'test-model');
      const [{ params }] = peer.asked;
      assert.equal(params.messages[0].content.text, prompt);
      assert.equal(params.maxTokens, 64);
      const runs = await at.fixture.calls('sampling', (c) => c.args.prompt === prompt);
      assert.equal(runs.at(-1).answers.model.content.text, 'model says hi');
    });

    it('a model that fails ends the call with a tool error, and the server never runs it again (C-34)', LIMIT, async () => {
      const prompt = `failing ${release.name}`;
      const broken = () => {
        throw new Error('no model today');
      };
      const peer = await at.connect(release, { answers: { ...agreeable, sample: broken } });
      assert.equal((await peer.call('sampling', { prompt })).isError, true);
      assert.equal((await at.fixture.calls('sampling', (c) => c.args.prompt === prompt)).length, 1);
    });

    it('roots: the client’s list reaches the server', LIMIT, async () => {
      const peer = await at.connect(release, { answers: { ...agreeable, roots: () => ({ roots: [{ uri: `file:///${release.name}` }] }) } });
      const { answer } = peer.json(await peer.call('roots'));
      assert.deepEqual(answer.roots, [{ uri: `file:///${release.name}` }]);
    });

    it('an input the client did not declare is a tool error that says so, and nobody is asked', LIMIT, async () => {
      const peer = await at.connect(release, { answers: {} });
      for (const [name, args] of [['confirm', { subject: 'bare' }], ['sampling', { prompt: 'bare' }], ['roots', {}], ['three', { label: 'bare' }]]) {
        const result = await peer.call(name, args);
        assert.equal(result.isError, true, name);
        assert.match(peer.texts(result).join(), /elicitation|sampling|roots/i);
      }
      assert.deepEqual(peer.asked, []);
    });
  });
}

describe('URL mode', () => {
  const [older, newer] = eliciting;

  it(`${newer.name}: the URL is shown with an elicitationId of the bridge, accept is consent only`, LIMIT, async () => {
    const peer = await at.connect(newer, { answers: { ...agreeable, elicit: () => ({ action: 'accept' }) } });
    const { answer } = peer.json(await peer.call('visit', { url: 'https://example.com/pay?x=1' }));
    assert.deepEqual(answer, { action: 'accept' });
    const [{ params }] = peer.asked;
    assert.equal(params.mode, 'url');
    assert.equal(params.url, 'https://example.com/pay?x=1');
    assert.match(params.elicitationId, /^[0-9a-f-]{36}$/);
  });

  it(`${older.name}: a URL cannot be asked for, and the tool error says so`, LIMIT, async () => {
    const peer = await at.connect(older);
    const result = await peer.call('visit', { url: 'https://example.com/' });
    assert.equal(result.isError, true);
    assert.deepEqual(peer.asked, []);
  });
});
