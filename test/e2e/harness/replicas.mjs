// Three bridges that share a Redis, behind nginx without affinity.
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { bridgeBinary } from './bridge.mjs';
import { freePort, start, stop, until } from './process.mjs';

const PATH = `${process.env.PATH}:/usr/sbin`;

/** Why replicas cannot be tested here; undefined when they can. */
export function missing() {
  const absent = ['redis-server', 'nginx'].filter((program) => {
    try {
      execFileSync('sh', ['-c', `command -v ${program}`], { env: { PATH }, stdio: 'ignore' });
      return false;
    } catch {
      return true;
    }
  });
  return absent.length > 0 ? `left out: ${absent.join(' and ')} not installed (apt-get install redis-server nginx-light)` : undefined;
}

/** Starts everything; `url` is nginx's, `restart()` restarts one replica after the other in order. */
export async function startReplicas(upstream) {
  const dir = mkdtempSync(join(tmpdir(), 'bridge-replicas-'));
  const keys = join(dir, 'keys');
  writeFileSync(keys, `${randomBytes(32).toString('base64')}\n`, { mode: 0o600 });
  const redis = await freePort();
  const others = [await run('redis-server', ['--port', String(redis), '--bind', '127.0.0.1', '--dir', dir, '--save', ''], redis)];
  const binary = await bridgeBinary();
  const replicas = [];
  for (let i = 0; i < 3; i++) {
    const port = await freePort();
    const args = ['serve', '--upstream', upstream, '--listen', `127.0.0.1:${port}`, '--store.url', `redis://127.0.0.1:${redis}`,
      '--store.keys', keys, '--replica.listen', '127.0.0.1:0']; // prettier-ignore
    replicas.push({ port, again: () => run(binary, args, port) });
  }
  for (const replica of replicas) replica.handle = await replica.again();
  const port = await freePort();
  writeFileSync(join(dir, 'nginx.conf'), conf(dir, port, replicas));
  others.push(await run('nginx', ['-c', join(dir, 'nginx.conf'), '-e', 'stderr'], port));
  return {
    url: `http://127.0.0.1:${port}/mcp`,
    async restart() {
      for (const replica of replicas) {
        const { code } = await stop(replica.handle, 40_000);
        if (code !== 0) throw new Error(`a replica ended with ${code}: ${replica.handle.log}`);
        replica.handle = await replica.again();
      }
    },
    async stop() {
      for (const handle of [...replicas.map((replica) => replica.handle), ...others.reverse()]) await stop(handle, 10_000);
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

async function run(program, args, port) {
  const handle = start(program, args, { env: { ...process.env, PATH } });
  handle.child.stdout.resume();
  let ended;
  void handle.exited.then((result) => (ended = result));
  await until(() => {
    if (ended) throw new Error(`${program} exited with ${ended.code}: ${handle.log}`);
    return accepts(port);
  }, `${program} to listen`, 20_000); // prettier-ignore
  return handle;
}

const accepts = (port) =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => resolve(socket.destroy() && true));
    socket.on('error', () => resolve(false));
  });

const conf = (dir, port, replicas) => `
daemon off; worker_processes 1; pid ${dir}/pid; error_log stderr error;
events { worker_connections 512; }
http {
  access_log off; client_body_temp_path ${dir}/body; proxy_temp_path ${dir}/proxy;
  fastcgi_temp_path ${dir}/fastcgi; uwsgi_temp_path ${dir}/uwsgi; scgi_temp_path ${dir}/scgi;
  upstream bridges { ${replicas.map((replica) => `server 127.0.0.1:${replica.port} max_fails=1 fail_timeout=1s;`).join(' ')} keepalive 8; }
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass http://bridges; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host;
      proxy_buffering off; proxy_read_timeout 1h;
    }
  }
}
`;
