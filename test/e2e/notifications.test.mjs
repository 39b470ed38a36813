// Progress, log messages, changed lists and updated resources.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { agreeable } from './harness/client.mjs';
import { until } from './harness/process.mjs';
import { eliciting, releases } from './harness/releases.mjs';
import { deferred, LIMIT, world } from './harness/world.mjs';

const increasing = (values) => values.every((value, i) => i === 0 || value > values[i - 1]);
const UPDATED = 'notifications/resources/updated';

for (const release of releases) {
  describe(`${release.name} (${release.version})`, () => {
    const at = world();

    it('progress reaches the caller in order', LIMIT, async () => {
      const peer = await at.connect(release);
      const { progress } = await peer.watch('steps', { count: 5 });
      assert.deepEqual(progress.map((p) => p.progress), [1, 2, 3, 4, 5]);
      assert.deepEqual(new Set(progress.map((p) => p.total)), new Set([5]));
    });

    it('no progress is sent to who did not ask for it', LIMIT, async () => {
      const peer = await at.connect(release);
      await peer.call('steps', { count: 3 });
      assert.deepEqual(peer.received.filter((m) => m.method === 'notifications/progress'), []);
    });

    it('log messages follow the session’s level', LIMIT, async () => {
      const peer = await at.connect(release);
      await peer.call('log');
      assert.deepEqual(peer.of('notifications/message'), []);
      await peer.client.setLoggingLevel('warning');
      await peer.call('log');
      await until(() => peer.of('notifications/message').length === 2, 'two log messages');
      assert.deepEqual(peer.of('notifications/message').map((n) => [n.params.level, n.params.logger, n.params.data]), [
        ['warning', 'fixture', { said: 'warning' }],
        ['error', 'fixture', { said: 'error' }],
      ]);
    });

    it('log level is per session', LIMIT, async () => {
      const [loud, quiet] = [await at.connect(release), await at.connect(release)];
      await loud.client.setLoggingLevel('debug');
      await Promise.all([loud.call('log'), quiet.call('log')]);
      await until(() => loud.of('notifications/message').length === 4, 'four log messages');
      assert.deepEqual(quiet.of('notifications/message'), []);
    });

    it('list-changed: a new tool is announced once and then listed', LIMIT, async () => {
      const peer = await at.connect(release);
      const before = await peer.client.listTools();
      await at.fixture.listening((p) => p.notifications?.toolsListChanged, 'the bridge to listen for tools');
      await at.fixture.command('add-tool', { name: `new-${release.name}` });
      await until(() => peer.of('notifications/tools/list_changed').length > 0, 'tools/list_changed');
      const now = await peer.client.listTools();
      assert.equal(now.tools.length, before.tools.length + 1);
      assert.deepEqual(peer.texts(await peer.call(`new-${release.name}`)), [`new-${release.name}`]);

      await at.fixture.command('touch-prompts');
      await at.fixture.command('touch-resources');
      await until(() => peer.of('notifications/resources/list_changed').length > 0, 'resources/list_changed');
      assert.equal(peer.of('notifications/prompts/list_changed').length, 1);
      assert.equal(peer.of('notifications/tools/list_changed').length, 1, 'announced once');
    });

    it('list-changed reaches every client', LIMIT, async () => {
      const peers = [await at.connect(release), await at.connect(release)];
      await Promise.all(peers.map((peer) => peer.client.listTools()));
      await at.fixture.listening((p) => p.notifications?.toolsListChanged);
      await at.fixture.command('add-tool', { name: `both-${release.name}` });
      await until(() => peers.every((peer) => peer.of('notifications/tools/list_changed').length > 0), 'both clients to be told');
    });

    it('resource updates reach the subscriber and no one else, until it unsubscribes', LIMIT, async () => {
      const [peer, bystander] = [await at.connect(release), await at.connect(release)];
      await peer.client.subscribeResource({ uri: 'memo://counter' });
      const value = async () => (await peer.client.readResource({ uri: 'memo://counter' })).contents[0].text;
      const was = await value();
      await at.fixture.command('update-counter');
      await until(() => peer.of(UPDATED).length === 1, 'the update');
      assert.deepEqual(peer.of(UPDATED)[0].params, { uri: 'memo://counter' });
      assert.equal(await value(), String(Number(was) + 1));

      await peer.client.subscribeResource({ uri: 'memo://other' });
      await peer.client.unsubscribeResource({ uri: 'memo://counter' });
      await at.fixture.command('update-counter');
      await at.fixture.command('update', { uri: 'memo://other' });
      await until(() => peer.of(UPDATED).some((n) => n.params.uri === 'memo://other'), 'the other update');
      // For two seconds after the switch the one before is heard, too (C-14): an update may come twice.
      assert.deepEqual([...new Set(peer.of(UPDATED).map((n) => n.params.uri))], ['memo://counter', 'memo://other']);
      assert.deepEqual(bystander.of(UPDATED), []);
    });

    it('a gap in the listen is reported as a change (C-19, C-20)', LIMIT, async () => {
      const peer = await at.connect(release);
      await peer.client.subscribeResource({ uri: 'memo://counter' });
      await at.fixture.listening((p) => p.notifications?.toolsListChanged);
      await at.fixture.command('drop-listens');
      await until(() => peer.of(UPDATED).some((n) => n.params.uri === 'memo://counter'), 'the synthesized update');
      await until(() => peer.of('notifications/tools/list_changed').length > 0, 'the synthesized list change');
      const seen = peer.of(UPDATED).length;
      await at.fixture.listening((p) => p.notifications?.resourceSubscriptions?.includes('memo://counter'), 'the listen to be open again');
      await at.fixture.command('update-counter');
      await until(() => peer.of(UPDATED).length > seen, 'an update after the gap');
    });
  });
}

for (const release of eliciting) {
  describe(`${release.name} (${release.version}), across a question`, () => {
    const at = world();

    it('progress keeps rising across an elicitation and never follows the result', LIMIT, async () => {
      const answer = deferred();
      const peer = await at.connect(release, { answers: { ...agreeable, elicit: () => answer.promise } });
      const seen = [];
      const call = peer.client.callTool({ name: 'progress-confirm', arguments: { label: release.name } }, undefined, {
        onprogress: (p) => seen.push(p.progress),
      });
      await until(() => peer.asked.length === 1, 'the question');
      answer.resolve({ action: 'accept', content: { go: true } });
      assert.deepEqual(peer.texts(await call), ['done']);
      assert.ok(seen.length >= 4, `saw ${seen}`);
      assert.ok(increasing(seen), `saw ${seen}`);
      const tokens = new Set(peer.received.filter((m) => m.method === 'notifications/progress').map((m) => m.params.progressToken));
      assert.equal(tokens.size, 1, 'one token for the whole call');
      const kinds = peer.received.map((m) => m.method ?? 'response');
      assert.ok(kinds.lastIndexOf('notifications/progress') < kinds.lastIndexOf('response'));
    });
  });
}
