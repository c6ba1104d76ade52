import { readdir, readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import WebSocket from "ws";
import { useFixture, useFolder } from "../../fixture.ts";
import { run, startReady } from "../../program.ts";
import { RawClient } from "../../realtime/raw-client.ts";
import { SECRET } from "../../secret.ts";
import { until } from "../../until.ts";

const ROWS = 10_000;
const SOCKETS = 100;
const LIMIT_MEBIBYTES = 512;

const folder = useFolder("memory-", 0o755);
const program = useFixture(() =>
  startReady({ DATA_DIR: folder, JWT_SECRET: SECRET, RATE_LIMIT: "0", REST_REQUIRE_APIKEY: "false" }),
);

/** The service, Postgres and its processes: the pages that they share count once, as under the limit of a container. */
async function usedMebibytes(root: number): Promise<number> {
  const parents = new Map<number, number>();
  for (const name of await readdir("/proc")) {
    const stat = /^\d+$/.test(name) ? await readFile(`/proc/${name}/stat`, "utf8").catch(() => null) : null;
    if (stat !== null) parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(")")).split(" ")[2]));
  }
  const isOurs = (pid: number): boolean => pid === root || (parents.has(pid) && isOurs(parents.get(pid)!));
  let kibibytes = 0;
  for (const pid of [...parents.keys()].filter(isOurs)) {
    const memory = await readFile(`/proc/${pid}/smaps_rollup`, "utf8").catch(() => "");
    kibibytes += Number(/^Pss:\s+(\d+)/m.exec(memory)?.[1] ?? 0);
  }
  return kibibytes / 1024;
}

// The test sets no limit of the kernel, because few machines allow that.
test.runIf(process.platform === "linux")(
  "the service and the embedded Postgres, with rows, sockets and GraphQL, fit a machine of 512 MB",
  async () => {
    const { child } = run(
      "service/cli/sql.ts",
      { DATA_DIR: folder },
      {
        args: [
          `insert into public.users (name, email) select 'User ' || n, n || '@example.org' from generate_series(1, ${ROWS}) n`,
        ],
      },
    );
    await until(() => child.exitCode !== null);
    expect(child.exitCode).toBe(0);
    const clients = await Promise.all(Array.from({ length: SOCKETS }, () => new RawClient(program.url).opened()));
    const query = JSON.stringify({ query: "{ users(limit: 100) { name } }" });
    const headers = { "Content-Type": "application/json" };
    for (let round = 0; round < 100; round++) {
      const asked = await fetch(`${program.url}/graphql`, { method: "POST", headers, body: query });
      expect((await asked.json()) as object).not.toHaveProperty("errors");
      const read = await fetch(`${program.url}/rest/v1/users?select=*&limit=1000`);
      expect(await read.json()).toHaveLength(1000);
    }
    expect(clients.every(({ socket }) => socket.readyState === WebSocket.OPEN)).toBe(true);
    const used = await usedMebibytes(program.child.pid!);
    expect(used).toBeGreaterThan(50);
    expect(used).toBeLessThan(LIMIT_MEBIBYTES);
    for (const { socket } of clients) socket.close();
  },
);
