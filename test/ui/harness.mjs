// Starts what the tests look at: the stage's server, the bridge, the stage's clients.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const root = join(import.meta.dirname, "../..");
export const token = "a-token-for-the-tests-of-the-view";
const running = [];

// build compiles the bridge and the stage once.
export function build() {
  const dir = mkdtempSync(join(tmpdir(), "bridge-ui-"));
  for (const [name, source] of [["bridge", "./cmd/bridge"], ["stage", "./test/ui/stage"]]) {
    const built = spawnSync("go", ["build", "-o", join(dir, name), source], { cwd: root, stdio: "inherit" });
    if (built.status !== 0) throw new Error(`go build ${source} failed`);
  }
  writeFileSync(join(dir, "token"), token, { mode: 0o600 });
  return dir;
}

// launch runs a program and returns it once a line matches, with the match.
export function launch(file, args, pattern) {
  const child = spawn(file, args, { stdio: ["ignore", "pipe", "pipe"] });
  running.push(child);
  return new Promise((resolve, reject) => {
    let text = "";
    const take = (chunk) => {
      text += chunk;
      const found = pattern.exec(text);
      if (found) resolve({ child, found, said: () => text });
    };
    child.stdout.on("data", take);
    child.stderr.on("data", take);
    child.on("exit", (code) => reject(new Error(`${file} ended with ${code}:\n${text}`)));
  });
}

export async function end(child) {
  const over = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGINT");
  const late = setTimeout(() => child.kill("SIGKILL"), 5000);
  await over;
  clearTimeout(late);
}

export async function endAll() {
  await Promise.all(running.filter((c) => c.exitCode === null && c.signalCode === null).map(end));
}

// bridge starts the bridge in front of a server; the ports are free ones, or given.
export async function bridge(dir, server, listen = "127.0.0.1:0", admin = "127.0.0.1:0", more = []) {
  const { child, said } = await launch(join(dir, "bridge"), [
    "serve", "--upstream", server, "--listen", listen, "--admin.listen", admin, "--admin.token-file", join(dir, "token"),
    "--log.format", "json", "--limits.sessions", "20000", "--timeouts.drain", "0s", ...more,
  ], /the admin listener is open/);
  return {
    child,
    said,
    url: /"urls":\["([^"]+)"/.exec(said())[1],
    admin: /"url":"([^"]+)"/.exec(said())[1],
  };
}
