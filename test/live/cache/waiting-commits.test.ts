import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Cluster } from "../../../cluster/embedded/cluster.ts";
import type { Service } from "../../../service/service.ts";
import { serve } from "../../serve.ts";
import { startServer } from "../../server-binaries.ts";
import { until } from "../../until.ts";
import { followed, headersOf, readFrom, warm } from "./cached-service.ts";

let dataDir: string;
let cluster: Cluster;
let owner: pg.Client;
let service: Service;

beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "waiting-commits-"));
  await chmod(dataDir, 0o755);
  cluster = await startServer({ dataDir, port: null });
  owner = await connect();
  await owner.query(`
    create role anon;
    create role authenticated;
    create role authenticator login noinherit;
    grant anon, authenticated to authenticator;
    create table news (id int primary key, title text);
    create table others (id int);
    insert into news values (1, 'begun');
    grant select on news to authenticated;
    create publication supabase_realtime for table news, others`);
  const [url, ownerUrl] = ["authenticator", "postgres"].map((role) => cluster.url(role, "postgres"));
  service = await serve({ url: url!, ownerUrl: ownerUrl! }, { CACHE: "true", SERVER_TIMING: "true" });
});
afterAll(async () => {
  await service.stop();
  await owner.end();
  await cluster.stop();
  await rm(dataDir, { recursive: true, force: true });
});

async function connect(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: cluster.url("postgres", "postgres") });
  await client.connect();
  return client;
}

/** A commit with `synchronous_commit = on` waits from now on, or no longer. */
async function setStandby(name: string): Promise<void> {
  await owner.query(`alter system set synchronous_standby_names = '${name}'`);
  await owner.query("select pg_reload_conf()");
  await until(
    async () => (await owner.query("show synchronous_standby_names")).rows[0].synchronous_standby_names === name,
  );
  await owner.query("checkpoint");
}

const PATH = "news?select=title";
const caller = headersOf("ann");
const read = () => readFrom(service.url, PATH, caller);

test("a result that was read while a commit was in the stream and not visible yet is not kept", async () => {
  await owner.query("alter system set synchronous_commit = 'local'");
  await setStandby("");
  expect((await warm(service.url, PATH, caller)).body).toContain("begun");
  await setStandby("nobody");
  const writer = await connect();
  const committed = writer.query(
    "begin; set local synchronous_commit = on; update news set title = 'waiting'; insert into others values (1); commit",
  );
  await until(
    async () => (await owner.query("select from pg_stat_activity where wait_event = 'SyncRep'")).rowCount === 1,
  );
  await followed(service, owner);
  for (let time = 0; time < 5; time++) {
    const { body, cache } = await read();
    expect(body).toContain("begun");
    expect(cache).not.toBe("hit");
  }
  await setStandby("");
  await committed;
  expect((await read()).body).toContain("waiting");
  expect((await warm(service.url, PATH, caller)).body).toContain("waiting");
  await writer.end();
});
