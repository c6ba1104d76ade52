import { expect, test } from "vitest";
import { copySchema } from "../../../cluster/archive/copy-schema.ts";
import { runBackfills } from "../../../migrate/backfill.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { cloneDatabase } from "../../database.ts";
import { BACKFILL_SQL } from "../../migrate/declared-backfill.ts";

test("only a copy with all values has the record of backfills, whose errors name values", async () => {
  const source = await cloneDatabase("empty");
  try {
    await withClient(source.ownerUrl, async (client) => {
      await client.query(BACKFILL_SQL);
      await client.query(`create or replace function public.fill_cents() returns trigger language plpgsql as $$
        begin raise 'The price of Ada is wrong'; end $$`);
    });
    await expect(runBackfills(source.ownerUrl, { load: 1, report: () => {} })).rejects.toThrow("Ada");
    for (const [options, expected] of [
      [{}, []],
      [{ sample: { share: 1, seed: 0 } }, []],
      [{ withRows: true, isAnonymized: true }, []],
      [{ withRows: true }, [{ error: expect.stringContaining("Ada") }]],
    ] as const) {
      const branch = await cloneDatabase("empty");
      try {
        await copySchema(source.ownerUrl, branch.ownerUrl, options);
        const records = await withClient(branch.ownerUrl, (client) =>
          client.query("select error from graphile_migrate.backfills"),
        );
        expect([options, records.rows]).toEqual([options, expected]);
      } finally {
        await branch.drop();
      }
    }
  } finally {
    await source.drop();
  }
});
