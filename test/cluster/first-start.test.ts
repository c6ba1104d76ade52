import { join } from "node:path";
import { expect, test } from "vitest";
import { freePort } from "../../bench/measuring/free-port.ts";
import { reachPostgres, startPostgres } from "../../cluster/served-postgres.ts";
import { readConfig } from "../../config/config.ts";
import { withClient } from "../../postgres/client/with-client.ts";
import { useFolder } from "../fixture.ts";

const folder = useFolder("first-start-");

test("commands that are run during the first start wait for the database, and do not disturb the service", async () => {
  const settings = { DATA_DIR: join(folder, "data"), EMBEDDED_PORT: String(await freePort()) };
  const { config } = readConfig(settings);
  const { promise: created, resolve: tellCreated } = Promise.withResolvers<void>();
  const started = startPostgres(
    config,
    () => tellCreated(),
    (reason) => {
      throw reason;
    },
  );
  await created;
  const commands = Promise.all(Array.from({ length: 6 }, () => reachPostgres(config, () => {})));
  const postgres = await started;
  try {
    for (const { ownerUrl } of await commands) {
      const { rows } = await withClient(ownerUrl, (client) => client.query("select current_database() as name"));
      expect(rows).toEqual([{ name: "content" }]);
    }
  } finally {
    await postgres.close();
  }
});

test("a start tells when initdb and when Postgres is spawned, before it is ready", async () => {
  const { config } = readConfig({ DATA_DIR: join(folder, "spawned") });
  const start = async () => {
    let spawned = 0;
    const postgres = await startPostgres(
      config,
      () => {},
      () => {},
      () => spawned++,
    );
    const spawnedBefore = spawned;
    await postgres.close();
    return spawnedBefore;
  };
  expect(await start()).toBe(2);
  expect(await start()).toBe(1);
});
