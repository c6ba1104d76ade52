import type pg from "pg";
import { expect, test } from "vitest";
import { withClient } from "../../../postgres/client/with-client.ts";
import { urlOf } from "../../database.ts";
import { until } from "../../until.ts";

const url = urlOf("postgres", "postgres");
const pidOf = async (client: pg.Client) =>
  (await client.query<{ pid: number }>("select pg_backend_pid() as pid")).rows[0]!.pid;

async function isGone(pid: number): Promise<boolean> {
  const { rowCount } = await withClient(url, (client) =>
    client.query("select from pg_stat_activity where pid = $1", [pid]),
  );
  return rowCount === 0;
}

test("the result of the work is returned, and its session is closed", async () => {
  const pid = await withClient(url, pidOf);
  expect(pid).toBeGreaterThan(0);
  await until(() => isGone(pid));
});

test("the session is closed, too, if the work fails", async () => {
  let pid = 0;
  const work = withClient(url, async (client) => {
    pid = await pidOf(client);
    await client.query("select 1/0");
  });
  await expect(work).rejects.toMatchObject({ code: "22012" });
  await until(() => isGone(pid));
});

test("a session that is killed fails its own work only", async () => {
  const work = withClient(url, async (client) => {
    const pid = await pidOf(client);
    await withClient(url, (other) => other.query("select pg_terminate_backend($1)", [pid]));
    await client.query("select 1");
  });
  await expect(work).rejects.toThrow();
});
