import { expect, test } from "vitest";
import { withScratchDatabase } from "../../migrate/scratch-database.ts";
import { withClient } from "../../postgres/client/with-client.ts";
import { urlOf } from "../database.ts";
import { useFixture } from "../fixture.ts";
import { ownHistories } from "./own-histories.ts";

const own = useFixture(() => ownHistories(["platform"]));

test("a command with another root database does not drop the copy of one that works", async () => {
  const { shadowUrl, rootUrl } = own.settings;
  const [{ name }] = (await own.rows("select current_database() as name")) as [{ name: string }];
  const otherRoot = urlOf("postgres", name);
  const other = () => withScratchDatabase(shadowUrl, otherRoot, async () => "done");
  await withScratchDatabase(shadowUrl, rootUrl, async () => {
    await expect(other()).rejects.toThrow("is used by another command");
    expect(await own.shadowExists()).toBe(true);
  });
  expect(await other()).toBe("done");
});

test("a command whose claim is cut stops and drops its copy", async () => {
  const { shadowUrl, rootUrl } = own.settings;
  const [{ shadow }] = (await own.rows("select current_database() || '_shadow' as shadow")) as [{ shadow: string }];
  const cutClaim = () =>
    withClient(rootUrl, (client) =>
      client.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'scratch database ' || hashtext($1)",
        [shadow],
      ),
    );
  const cut = withScratchDatabase(shadowUrl, rootUrl, async () => {
    expect((await cutClaim()).rowCount).toBe(1);
    return withClient(shadowUrl, (client) => client.query("select pg_sleep(3600)"));
  });
  await expect(cut).rejects.toThrow("was lost");
  expect(await own.shadowExists()).toBe(false);
  expect(await withScratchDatabase(shadowUrl, rootUrl, async () => "done")).toBe("done");
});
