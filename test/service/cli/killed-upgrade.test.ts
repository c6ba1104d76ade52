import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { processesIn } from "../../../cluster/embedded/processes.ts";
import { withOldCluster } from "../../../cluster/upgrade-cluster.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { hasOldPostgres, makeOldCluster, OLD_BINARIES, OLD_MAJOR } from "../../old-cluster.ts";
import { run } from "../../program.ts";
import { until } from "../../until.ts";
import { runCommandWith } from "./run-command.ts";

test.runIf(hasOldPostgres)(
  "an upgrade that is killed while either Postgres runs leaves none running, and the next one completes it",
  async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "killed-upgrade-"));
    await chmod(dataDir, 0o755);
    const data = join(dataDir, "postgres");
    try {
      await makeOldCluster(data);
      await withOldCluster(data, OLD_BINARIES, async (url) => {
        await withClient(url("postgres"), (client) => client.query("create database content"));
        await withClient(url("content"), (client) =>
          client.query("create table public.notes as select n from generate_series(1, 1000) as n"),
        );
      });
      for (const folder of [data, join(dataDir, "upgrading/postgres")]) {
        const { child } = run("service/cli/upgrade.ts", { DATA_DIR: dataDir });
        await until(async () => existsSync(join(folder, "postmaster.pid")) || child.exitCode !== null);
        child.kill("SIGKILL");
        expect((await once(child, "close"))[1]).toBe("SIGKILL");
        await until(async () => (await processesIn(folder)).length === 0);
      }
      const result = await runCommandWith("upgrade", [], { DATA_DIR: dataDir });
      expect(result).toMatchObject({ code: 0, stdout: expect.stringContaining("1000 rows of 1 tables are copied") });
      expect(await readdir(dataDir)).toEqual(expect.arrayContaining(["postgres", `postgres-${OLD_MAJOR}`]));
      expect(existsSync(join(dataDir, "upgrading"))).toBe(false);
    } finally {
      await rm(dataDir, { recursive: true, force: true });
    }
  },
);
