import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import type { Cluster } from "../../cluster/embedded/cluster.ts";
import type { Binaries } from "../../cluster/embedded/create-cluster.ts";
import { runMigrations } from "../../migrate/migrate.ts";
import { postmasterOf } from "../postmaster.ts";
import { startServer } from "../server-binaries.ts";

/** A cluster that may be broken: with the content service's database, and a table that everybody may write to. */
export type OwnPostgres = AsyncDisposable & {
  readonly url: string;
  readonly ownerUrl: string;
  /** Runs SQL as the superuser. */
  execute(sql: string): Promise<pg.QueryResult>;
  start(): Promise<void>;
  /** Tells the server; resolves when it has ended. */
  signal(name: NodeJS.Signals): Promise<void>;
};

/** Nothing keeps a number from being written twice, so that it shows. */
export const MARKS = `
  create table public.marks (id bigint generated always as identity primary key, number bigint not null, note text);
  create index on public.marks (number);
  alter table public.marks enable row level security;
  create policy everybody on public.marks using (true) with check (true);
  grant select, insert (number, note) on public.marks to anon, authenticated`;

type Options = {
  readonly dataDir?: string;
  readonly settings?: Readonly<Record<string, string>>;
  readonly binaries?: Binaries;
};

export async function startOwnPostgres({ dataDir, settings = {}, binaries }: Options = {}): Promise<OwnPostgres> {
  const folder = dataDir ?? (await mkdtemp(join(tmpdir(), "content-service-fault-")));
  let cluster: Cluster;
  const start = async () => {
    cluster = await startServer({ dataDir: folder, port: null, settings, ...(binaries && { binaries }) });
  };
  const execute = async (sql: string, database = "content") => {
    const client = new pg.Client({ connectionString: cluster.url("postgres", database) });
    client.on("error", () => {});
    await client.connect();
    try {
      return await client.query(sql);
    } finally {
      await client.end();
    }
  };
  await start();
  await execute("create database content", "postgres");
  const urlOf = (database: string) => cluster.url("postgres", database);
  await runMigrations(
    { name: "migrate" },
    { url: urlOf("content"), shadowUrl: urlOf("shadow"), rootUrl: urlOf("postgres") },
  );
  await execute(MARKS);
  return {
    url: cluster!.url("authenticator", "content"),
    ownerUrl: urlOf("content"),
    execute: (sql) => execute(sql),
    start,
    async signal(name) {
      process.kill(await postmasterOf(folder), name);
      await cluster.ended;
    },
    async [Symbol.asyncDispose]() {
      await cluster.stop();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
