import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  cancelStatement,
  readDatabaseActivity,
  readStatementStatistics,
} from "../../../operations/inspect/database-activity.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import type { AsOwner } from "../../../postgres/database/owner-pool.ts";
import { useFixture, useFolder } from "../../fixture.ts";
import { startServer } from "../../server-binaries.ts";
import { until } from "../../until.ts";

let superuser: pg.Client;

const dataDir = useFolder("activity-");
const cluster = useFixture(() =>
  startServer({ dataDir, port: null, settings: { shared_preload_libraries: "pg_stat_statements" } }),
);
beforeAll(async () => {
  superuser = new pg.Client({ connectionString: cluster.url("postgres", "postgres"), application_name: "superuser" });
  await superuser.connect();
  await superuser.query('create role plain login; create role other login; create schema "of extensions"');
});
afterAll(() => superuser.end());

const as =
  (role: string): AsOwner =>
  (work) =>
    withClient(cluster.url(role, "postgres"), work);

describe("the statistics of statements", () => {
  test("are null without the extension, and otherwise those of the statements with the largest total time", async () => {
    expect(await readStatementStatistics(as("postgres"))).toBeNull();
    await superuser.query('create extension pg_stat_statements schema "of extensions"');
    await superuser.query("select pg_sleep(0.2), 'one'");
    await superuser.query("select pg_sleep(0.1), 'two'");
    const [first] = (await readStatementStatistics(as("postgres")))!;
    expect(first).toMatchObject({ statement: "select pg_sleep($1), $2", role: "postgres", calls: 2, rows: 2 });
    expect(first!.total_ms).toBeGreaterThan(290);
    expect(first!.max_ms).toBeGreaterThan(190);
  });
});

describe("an owner without the right to see other roles", () => {
  test("is told so, and may not cancel their statements", async () => {
    const other = new pg.Client({ connectionString: cluster.url("other", "postgres"), application_name: "other" });
    await other.connect();
    try {
      const sleeping = other.query("select pg_sleep(60)").catch((error: pg.DatabaseError) => error.code);
      const { rows } = await superuser.query("select pid from pg_stat_activity where application_name = 'other'");
      const { pid } = rows[0];
      const cancel = () => cancelStatement(as("plain"), { pid, startedAt: null }, async () => {});
      const seen = async (role: string) => {
        const activity = await readDatabaseActivity(as(role));
        return { all: activity.sees_all, session: activity.sessions.find((session) => session.pid === pid) };
      };
      await until(async () => (await seen("postgres")).session?.statement === "select pg_sleep(60)");
      expect(await seen("plain")).toEqual({ all: false, session: undefined });
      const hint = expect.stringContaining("grant pg_read_all_stats");
      await expect(cancel()).rejects.toMatchObject({ kind: "forbidden", hint });

      await superuser.query("grant pg_read_all_stats to plain");
      expect(await seen("plain")).toMatchObject({ all: true, session: { statement: "select pg_sleep(60)" } });
      await expect(cancel()).rejects.toMatchObject({ kind: "forbidden", code: "PERMISSION_DENIED" });
      await superuser.query("grant pg_signal_backend to plain");
      expect(await cancel()).toMatchObject({ pid, application: "other", role: "other" });
      expect(await sleeping).toBe("57014");
    } finally {
      await other.end();
    }
  });

  test("cancels nothing if the record of it fails", async () => {
    const other = new pg.Client({ connectionString: cluster.url("other", "postgres"), application_name: "spared" });
    await other.connect();
    try {
      const sleeping = other.query("select pg_sleep(0.5)");
      const { rows } = await superuser.query("select pid from pg_stat_activity where application_name = 'spared'");
      const refuse = () => Promise.reject(new Error("no record"));
      await until(async () => {
        const { rows: active } = await superuser.query(
          "select from pg_stat_activity where pid = $1 and state = 'active'",
          [rows[0].pid],
        );
        return active.length > 0;
      });
      await expect(cancelStatement(as("postgres"), { pid: rows[0].pid, startedAt: null }, refuse)).rejects.toThrow(
        "no record",
      );
      expect((await sleeping).rowCount).toBe(1);
    } finally {
      await other.end();
    }
  });
});
