import { rm, statfs, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { superviseCluster } from "../../../cluster/embedded/cluster.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { postmasterOf } from "../../postmaster.ts";
import { MAY_MOUNT, mountSmallDisk, saySkipped } from "../../small-disk.ts";
import { until } from "../../until.ts";

saySkipped("A full disk below a server that is to be started again");

test.runIf(MAY_MOUNT)("a server that crashes on a full disk is restarted when there is space", async () => {
  await using disk = await mountSmallDisk("120m");
  const dataDir = join(disk.folder, "data");
  const result: string[] = [];
  const givenUp: Error[] = [];
  const cluster = await superviseCluster({ dataDir, port: null, tell: (step) => result.push(step) }, (reason) =>
    givenUp.push(reason),
  );
  await using _stopped = { [Symbol.asyncDispose]: () => cluster.stop() };
  const ballast = join(disk.folder, "ballast");
  const { bavail, bsize } = await statfs(disk.folder);
  await writeFile(ballast, Buffer.alloc(bavail * bsize));
  process.kill(await postmasterOf(dataDir), "SIGKILL");
  await until(() => givenUp.length > 0 || result.some((step) => step.includes("could not be started")));
  expect(givenUp).toEqual([]);
  await rm(ballast);
  const answers = () => withClient(cluster.url("postgres", "postgres"), (client) => client.query("select"));
  await until(() =>
    answers().then(
      () => true,
      () => false,
    ),
  );
});
