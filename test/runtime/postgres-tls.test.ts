import { cp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "../../bench/measuring/free-port.ts";
import type { Cluster } from "../../cluster/embedded/cluster.ts";
import { chooseAccount, chownTo } from "../../cluster/embedded/processes.ts";
import { startPostgres } from "../../cluster/served-postgres.ts";
import { readConfig } from "../../config/config.ts";
import { openReplication } from "../../live/stream/change-stream.ts";
import { openListener } from "../../postgres/client/listen.ts";
import { openDatabase } from "../../postgres/database/database.ts";
import { type Authority, makeAuthority, type Signed } from "../certificates.ts";
import { useFolder } from "../fixture.ts";
import { Followed } from "../live/stream/followed.ts";
import { anon, sql } from "../postgres/database/open.ts";
import { startServer } from "../server-binaries.ts";
import { until } from "../until.ts";

const log = pino({ level: "silent" });

let port: number;
let cluster: Cluster;
let authority: Authority;
let anonymous: Authority;
let login: Signed;

const folder = useFolder("tls-", 0o755);
beforeAll(async () => {
  authority = await makeAuthority(folder, "authority");
  anonymous = await makeAuthority(folder, "stranger");
  login = await authority.sign("certified");
  const server = await authority.sign("localhost");
  await chownTo(await chooseAccount(), server.key);
  // Connections without TLS are refused, except through the socket, and one login shows a certificate.
  const rules = join(folder, "rules");
  await writeFile(rules, "local all all trust\nhostssl all certified all cert\nhostssl all all all scram-sha-256\n");
  port = await freePort();
  cluster = await startServer({
    dataDir: join(folder, "data"),
    port,
    settings: {
      ssl: "on",
      ssl_cert_file: server.certificate,
      ssl_key_file: server.key,
      ssl_ca_file: authority.certificate,
      hba_file: rules,
    },
  });
  const client = new pg.Client({ connectionString: cluster.url("postgres", "postgres") });
  await client.connect();
  await client.query("alter role postgres password 'secret'");
  await client.query("create role certified login");
  await client.query("create role anon; grant anon to certified");
  await client.query("create publication supabase_realtime for all tables");
  await client.end();
});
afterAll(() => cluster.stop());

const urlOf = (parameters: Record<string, string>, { host = "localhost", user = "postgres:secret" } = {}) =>
  `postgresql://${user}@${host}:${port}/postgres?${new URLSearchParams(parameters)}`;

/** Connects like the service when it starts. */
async function reach(url: string, ownerUrl = url) {
  const { config } = readConfig({ DATABASE_URL: url, OWNER_DATABASE_URL: ownerUrl, JWT_SECRET: "x".repeat(32) });
  return startPostgres(
    config,
    () => {},
    () => {},
  );
}

describe("sslmode=verify-full", () => {
  test("encrypts all connections of the service: requests, the owner, the listener, logical replication", async () => {
    const verified = { sslmode: "verify-full", sslrootcert: authority.certificate };
    const { requestUrl, ownerUrl } = await reach(urlOf(verified));
    const database = openDatabase({ url: requestUrl, ownerUrl, log, applicationName: "requests" });
    const listener = openListener({ url: ownerUrl, log });
    const changes = openReplication({
      url: ownerUrl,
      asOwner: (work) => database.asOwner(work),
      publication: "supabase_realtime",
      log,
    });
    const following = changes.follow(new Followed());
    await Promise.all([following.from, listener.listen("news", () => {})]);
    expect((await database.run(anon, sql("select 1"))).rows).toEqual([["1"]]);

    const { rows } = await database.asOwner((client) =>
      client.query<{ name: string; ssl: boolean }>(
        "select distinct application_name as name, ssl from pg_stat_ssl join pg_stat_activity using (pid) where client_port > 0 order by 1",
      ),
    );
    expect(rows.map(({ name }) => name)).toEqual(expect.arrayContaining(["changes", "listener", "requests"]));
    expect(rows.filter(({ ssl }) => !ssl)).toEqual([]);
    following.close();
    changes.close();
    await listener.close();
    await database.close();
  });

  test("a statement is cancelled over TLS as well", async () => {
    const { requestUrl, ownerUrl } = await reach(urlOf({ sslmode: "verify-full", sslrootcert: authority.certificate }));
    const database = openDatabase({ url: requestUrl, ownerUrl, log });
    const leaves = new AbortController();
    const slow = database.run(anon, sql("select pg_sleep(600)"), { pool: "slow", signal: leaves.signal });
    slow.catch(() => {});
    const running = async () =>
      (
        await database.asOwner((client) =>
          client.query(
            "select from pg_stat_activity where query like '%sleep(600)' and state = 'active' and pid <> pg_backend_pid()",
          ),
        )
      ).rowCount;
    await until(async () => (await running()) === 1);
    leaves.abort(new Error("left"));
    await until(async () => (await running()) === 0);
    await expect(slow).rejects.toThrow();
    await database.close();
  });

  test("refuses a server with a certificate of another authority, or a self-signed one", async () => {
    for (const sslrootcert of [anonymous.certificate, "system"]) {
      await expect(reach(urlOf({ sslmode: "verify-full", sslrootcert }))).rejects.toThrow(
        /localhost:\d+ \(DATABASE_URL\) cannot be used: .*certificate.*; the authority that signed .* sslrootcert/,
      );
    }
  });

  test("refuses a server whose host name differs from its certificate", async () => {
    const parameters = { sslmode: "verify-full", sslrootcert: authority.certificate };
    await expect(reach(urlOf(parameters, { host: "127.0.0.1" }))).rejects.toThrow(
      /127\.0\.0\.1:\d+ \(DATABASE_URL\) cannot be used: .*127\.0\.0\.1 is not in .*; use the name/,
    );
  });

  test("applies to the owner's connection, with its own certificate", async () => {
    const verified = urlOf({ sslmode: "verify-full", sslrootcert: authority.certificate });
    const wrong = urlOf({ sslmode: "verify-full", sslrootcert: anonymous.certificate });
    await expect(reach(verified, wrong)).rejects.toThrow("(OWNER_DATABASE_URL) cannot be used");
  });
});

describe("other modes behave as in libpq", () => {
  test("verify-ca checks the issuer, and not the host name", async () => {
    const parameters = { sslmode: "verify-ca", sslrootcert: authority.certificate };
    await reach(urlOf(parameters, { host: "127.0.0.1" }));
    const other = { sslmode: "verify-ca", sslrootcert: anonymous.certificate };
    await expect(reach(urlOf(other, { host: "127.0.0.1" }))).rejects.toThrow("sslrootcert");
  });

  test("require encrypts without checks; disable does not encrypt, which this server refuses", async () => {
    await reach(urlOf({ sslmode: "require" }));
    await expect(reach(urlOf({ sslmode: "disable" }))).rejects.toThrow("no encryption");
  });

  test("sslcert and sslkey authenticate instead of a password", async () => {
    const verified = { sslmode: "verify-full", sslrootcert: authority.certificate };
    const files = { sslcert: login.certificate, sslkey: login.key };
    const { loginRole } = await reach(urlOf({ ...verified, ...files }, { user: "certified" }));
    expect(loginRole).toBe("certified");
    await expect(reach(urlOf(verified, { user: "certified" }))).rejects.toThrow("valid client certificate");
  });

  test("a copy of the key that cannot be read is reported before the start", async () => {
    const gone = join(folder, "gone.crt");
    await cp(authority.certificate, gone);
    await reach(urlOf({ sslmode: "verify-full", sslrootcert: gone }));
    await rm(gone);
    await expect(reach(urlOf({ sslmode: "verify-full", sslrootcert: gone }))).rejects.toThrow(
      /DATABASE_URL must be .*sslrootcert must be one that can be read/,
    );
  });
});
