import { expect, test } from "vitest";
import { readConfig } from "../../../engine/config/config.ts";
import { openJobs } from "../../../engine/jobs/jobs.ts";
import { makeLogger } from "../../../engine/log.ts";
import { withClient } from "../../../engine/with-client.ts";
import { cloneDatabase } from "../../database.ts";
import { until } from "../../until.ts";

test("who cannot begin leaves no worker behind, which would hold a process that has failed to start", async () => {
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
    const attempt = openJobs({ url: database.ownerUrl, tasks: {}, tend, abandon: async () => {}, log });
    await expect(attempt).rejects.toThrow("no");
    expect(workingThen).toBeGreaterThan(0);
    await until(async () => (await working()) === 0);
  } finally {
    await database.drop();
  }
});
