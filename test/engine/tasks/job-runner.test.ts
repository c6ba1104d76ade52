import { expect, test } from "vitest";
import { readConfig } from "../../../engine/config/config.ts";
import { makeLogger } from "../../../engine/output/log.ts";
import { withClient } from "../../../engine/pg-client/with-client.ts";
import { startJobRunner } from "../../../engine/tasks/job-runner.ts";
import { cloneDatabase } from "../../database.ts";
import { until } from "../../until.ts";

test("a job runner that fails to start leaves no worker that keeps the process alive", async () => {
  const database = await cloneDatabase("content");
  const log = makeLogger(readConfig({ LOG_LEVEL: "silent" }).config);
  const working = () =>
    withClient(database.ownerUrl, async (client) => {
      const { rows } = await client.query<{ count: number }>(
        `select count(*)::int from pg_stat_activity where datname = $1 and application_name = 'jobs'`,
        [database.name],
      );
      return rows[0]!.count;
    });
  let workingThen = 0;
  const tend = async () => {
    workingThen = await working();
    throw new Error("no");
  };
  try {
    const attempt = startJobRunner({
      url: database.ownerUrl,
      lanes: [
        { tasks: {}, concurrency: 4 },
        { tasks: {}, concurrency: 1 },
      ],
      maintain: tend,
      cancelRunning: async () => {},
      log,
    });
    await expect(attempt).rejects.toThrow("no");
    expect(workingThen).toBeGreaterThan(0);
    await until(async () => (await working()) === 0);
  } finally {
    await database.drop();
  }
});
