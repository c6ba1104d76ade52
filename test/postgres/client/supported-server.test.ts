import { existsSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { startPostgres } from "../../../cluster/served-postgres.ts";
import { readConfig } from "../../../config/config.ts";
import {
  explainUnsupported,
  requireSupportedServer,
  requireTransactions,
} from "../../../postgres/client/supported-server.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { useDatabase } from "../../database.ts";
import { PGBOUNCER, startPgBouncer } from "../../routers/pgbouncer.ts";
import { socketAddressOf } from "../../routers/router.ts";
import { SECRET } from "../../secret.ts";

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

describe("a database", () => {
  const database = useDatabase({ template: "empty" });

  test("of a supported server is neither refused nor left in a transaction", async () => {
    await withClient(database.ownerUrl, async (client) => {
      await requireSupportedServer(client);
      await requireTransactions(client);
      await expect(client.query("vacuum")).resolves.toBeDefined();
    });
  });

  // Debian's package, which .ci/run installs.
  test.runIf(existsSync(PGBOUNCER))("behind a pooler in statement mode is refused at the start", async () => {
    const pooler = await startPgBouncer(socketAddressOf(database.url), { poolMode: "statement" });
    const url = `postgresql://authenticator@127.0.0.1:${pooler.port}/${database.name}`;
    const { config } = readConfig({ DATABASE_URL: url, OWNER_DATABASE_URL: database.ownerUrl, JWT_SECRET: SECRET });
    const ignore = () => {};
    try {
      const starting = startPostgres(config, ignore, ignore);
      await expect(starting).rejects.toThrow(/refuses transactions .*pool mode to transaction or session/);
    } finally {
      await pooler.close();
    }
  });
});
