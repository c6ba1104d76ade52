import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type pg from "pg";
import { expect, test } from "vitest";
import { startCluster } from "../../cluster/embedded/cluster.ts";
import { releaseHistories } from "../../migrate/committed-migrations.ts";
import { runMigrations } from "../../migrate/migrate.ts";
import { withClient } from "../../postgres/client/with-client.ts";
import { cloneDatabase } from "../database.ts";
import { hasOldPostgres, OLD_BINARIES, OLD_MAJOR } from "../old-cluster.ts";
import { binariesIn } from "../server-binaries.ts";
import { readSupabaseTemplate } from "../supabase-template.ts";

/** The tables of ours that refuse a new column with a default. */
async function refusingTables(client: pg.Client): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where n.nspname in ('api', 'auth', 'content_service', 'public', 'realtime', 'storage') and c.relkind in ('r', 'p') and not c.relispartition order by 1`,
  );
  expect(rows.length).toBeGreaterThan(30);
  const refused: string[] = [];
  for (const { name } of rows) {
    await client.query("begin");
    const added = client.query(
      `alter table ${name} add column views int default 0, add column doubled int generated always as (1 + 1) stored`,
    );
    await added.catch((error: Error) => refused.push(`${name}: ${error.message}`));
    await client.query("rollback");
  }
  return refused;
}

test("each table of platform and content accepts new columns with a default, and generated ones", async () => {
  const database = await cloneDatabase("content");
  try {
    expect(await withClient(database.ownerUrl, refusingTables)).toEqual([]);
  } finally {
    await database.drop();
  }
});

// Its releases since November 2026 refuse a column that the body of a function could depend on.
test.runIf(hasOldPostgres)(
  `so does each one on Postgres ${OLD_MAJOR}, and with the template for Supabase`,
  async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "new-columns-"));
    const binaries = await binariesIn(OLD_BINARIES);
    const cluster = await startCluster({ dataDir, port: null, settings: { fsync: "off" }, binaries, tell: () => {} });
    try {
      const url = (name: string) => cluster.url("postgres", name);
      const create = async (name: string, histories: number) => {
        await withClient(url("postgres"), (client) => client.query(`create database ${name}`));
        const settings = { url: url(name), shadowUrl: url(`${name}_shadow`), rootUrl: url("postgres") };
        await runMigrations({ name: "migrate" }, { ...settings, histories: releaseHistories().slice(0, histories) });
      };
      await create("platform", 1);
      await create("content", 2);
      expect(await withClient(url("content"), refusingTables)).toEqual([]);
      await withClient(url("platform"), (client) => client.query(readSupabaseTemplate("platform")));
      expect(await withClient(url("platform"), refusingTables)).toEqual([]);
    } finally {
      await cluster.stop();
      await rm(dataDir, { recursive: true, force: true });
    }
  },
);
