import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "../../../bench/free-port.ts";
import { readConfig } from "../../../engine/config/config.ts";
import { chooseAccount, chownTo, spawnAs } from "../../../engine/embedded/processes.ts";
import {
  explainUnsupported,
  requireSupportedServer,
  requireTransactions,
} from "../../../engine/pg-client/supported-server.ts";
import { withClient } from "../../../engine/pg-client/with-client.ts";
import { startPostgres } from "../../../engine/postgres/served-postgres.ts";
import { cloneDatabase, type TestDatabase } from "../../database.ts";
import { socketAddressOf } from "../../routers/router.ts";
import { SECRET } from "../../secret.ts";
import { until } from "../../until.ts";

const POSTGRES_18 = {
  host: "db.example.org",
  number: 180_004,
  release: "18.4",
  version: "PostgreSQL 18.4 on x86_64-pc-linux-gnu, compiled by gcc",
};

describe("a server", () => {
  test.each([
    ["Postgres 18", POSTGRES_18],
    ["Postgres 14", { ...POSTGRES_18, number: 140_000, release: "14.0" }],
    ["YugabyteDB 2025.1", { ...POSTGRES_18, number: 150_012, release: "15.12-YB-2025.1.0.0-b0" }],
    ["Aurora", { ...POSTGRES_18, host: "app.cluster-abc.eu-west-1.rds.amazonaws.com" }],
  ])("of %s is supported", (_, server) => {
    expect(explainUnsupported(server)).toBeNull();
  });

  test.each([
    ["Postgres 13", { ...POSTGRES_18, number: 130_023, release: "13.23" }, /of Postgres 13\.23, and 14 is the oldest/],
    ["YugabyteDB 2024.2", { ...POSTGRES_18, number: 110_002, release: "11.2-YB-2024.2.0.0-b0" }, /14 is the oldest/],
    [
      "CockroachDB",
      { ...POSTGRES_18, version: "CockroachDB CCL v26.2.0 (x86_64-pc-linux-gnu, built 2026/05/04)" },
      /of CockroachDB, .*no LISTEN/,
    ],
    ["Aurora DSQL", { ...POSTGRES_18, host: "abc123.dsql.us-east-1.on.aws" }, /of Aurora DSQL, .*no triggers/],
  ])("of %s is refused with the reason", (_, server, reason) => {
    expect(explainUnsupported(server)).toMatch(reason);
  });
});

const PGBOUNCER = "/usr/sbin/pgbouncer";

/** A pooler that gives each statement another session. */
async function startStatementPooler({ name, url }: TestDatabase): Promise<AsyncDisposable & { readonly url: string }> {
  const folder = await mkdtemp(join(tmpdir(), "statement-mode-"));
  await chmod(folder, 0o755);
  const port = await freePort();
  const server = socketAddressOf(url);
  const lines = [
    "[databases]",
    `* = host=${server.folder} port=${server.port}`,
    "[pgbouncer]",
    "listen_addr = 127.0.0.1",
    `listen_port = ${port}`,
    "unix_socket_dir =",
    "auth_type = trust",
    `auth_file = ${join(folder, "users.txt")}`,
    "pool_mode = statement",
    "ignore_startup_parameters = IntervalStyle",
  ];
  await writeFile(join(folder, "pgbouncer.ini"), lines.join("\n"));
  await writeFile(join(folder, "users.txt"), '"authenticator" ""\n');
  const account = await chooseAccount();
  for (const file of ["pgbouncer.ini", "users.txt"]) await chownTo(account, join(folder, file));
  // The run's Postgres lets nobody else near its socket.
  const pooler = await spawnAs(PGBOUNCER, [join(folder, "pgbouncer.ini")], account, server.folder);
  let printed = "";
  pooler.stderr!.on("data", (chunk) => (printed += chunk));
  await until(() => pooler.exitCode !== null || printed.includes("process up"));
  expect(pooler.exitCode, printed).toBeNull();
  return {
    url: `postgresql://authenticator@127.0.0.1:${port}/${name}`,
    async [Symbol.asyncDispose]() {
      const ended = once(pooler, "close");
      pooler.kill("SIGTERM");
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

describe("a database", () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await cloneDatabase("empty");
  });
  afterAll(() => database.drop());

  test("of a supported server is neither refused nor left in a transaction", async () => {
    await withClient(database.ownerUrl, async (client) => {
      await requireSupportedServer(client);
      await requireTransactions(client);
      await expect(client.query("vacuum")).resolves.toBeDefined();
    });
  });

  // Debian's package, which .ci/run installs.
  test.runIf(existsSync(PGBOUNCER))("behind a pooler in statement mode is refused at the start", async () => {
    await using pooler = await startStatementPooler(database);
    const environment = { DATABASE_URL: pooler.url, OWNER_DATABASE_URL: database.ownerUrl, JWT_SECRET: SECRET };
    const { config } = readConfig(environment);
    const ignore = () => {};
    const starting = startPostgres(config, ignore, ignore);
    await expect(starting).rejects.toThrow(/refuses transactions .*pool mode to transaction or session/);
  });
});
