import { existsSync } from "node:fs";
import { chmod, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Binaries } from "../../cluster/embedded/create-cluster.ts";
import { serverBinaries } from "../server-binaries.ts";

/** Debian's package `faketime`, for each architecture. */
const LIBRARY = ["x86_64", "aarch64"]
  .map((architecture) => `/usr/lib/${architecture}-linux-gnu/faketime/libfaketime.so.1`)
  .find((path) => existsSync(path));

export const MAY_MOVE_CLOCK = LIBRARY !== undefined;

export type MovedClock = {
  /** Postgres whose wall clock can be moved while it runs; its monotonic clock cannot. */
  readonly binaries: Binaries;
  /** Moves the clock so many seconds ahead of the real time. */
  moveTo(seconds: number): Promise<void>;
};

/** The folder must be one that the user who runs Postgres may read. */
export async function makeMovedClock(folder: string): Promise<MovedClock> {
  const binaries = await serverBinaries();
  const file = join(folder, "clock");
  const postgres = join(folder, "postgres-with-clock");
  const moveTo = async (seconds: number) => {
    await rm(file, { force: true });
    await writeFile(file, `${seconds < 0 ? "" : "+"}${seconds}\n`);
  };
  await moveTo(0);
  const settings = `LD_PRELOAD=${LIBRARY} FAKETIME_TIMESTAMP_FILE=${file} FAKETIME_NO_CACHE=1 FAKETIME_DONT_FAKE_MONOTONIC=1`;
  await writeFile(postgres, `#!/bin/sh\nexport ${settings}\nexec ${binaries.postgres} "$@"\n`);
  await chmod(postgres, 0o755);
  return { binaries: { ...binaries, postgres }, moveTo };
}
