import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "vitest";
import { chooseAccount, chownTo, spawnAs } from "../cluster/embedded/processes.ts";

/** An older Postgres, as a distribution installs it. */
export const OLD_MAJOR = "15";
export const OLD_BINARIES = `/usr/lib/postgresql/${OLD_MAJOR}/bin`;
export const hasOldPostgres = existsSync(join(OLD_BINARIES, "postgres"));

export async function makeOldCluster(target: string): Promise<void> {
  const account = await chooseAccount();
  await mkdir(target, { recursive: true, mode: 0o700 });
  await chownTo(account, target);
  const words = [`--pgdata=${target}`, "--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C.UTF-8"];
  const initdb = await spawnAs(join(OLD_BINARIES, "initdb"), words, account, target);
  initdb.stdout!.resume();
  initdb.stderr!.resume();
  expect((await once(initdb, "close"))[0]).toBe(0);
}
