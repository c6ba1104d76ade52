import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startCluster } from "#cluster/embedded";
import { withClient } from "#postgres/client";
import { watchMemory } from "../measuring/watch-memory.ts";
import { fill, ROWS_PER_MEGABYTE, TABLE } from "./large-table.ts";
import { findPgDump, installPostgres } from "./versions.ts";

const WRITER = new URL("../../cluster/archive/write-archive.ts", import.meta.url).href;

export type MeasuredProgram = { readonly seconds: number; readonly mebibytes: number; readonly fileBytes: number };
export type MeasuredBackup = { readonly backup: MeasuredProgram; readonly pgDump: MeasuredProgram | null };

/** Measures a backup of a database of about this size, and `pg_dump -Fc` of it with the same compression. */
export async function measureBackup(major: number, megabytes: number): Promise<MeasuredBackup> {
  await using opened = new AsyncDisposableStack();
  const { binaries } = opened.use(await installPostgres(major));
  const folder = await mkdtemp(join(tmpdir(), "backup-speed-"));
  opened.defer(() => rm(folder, { recursive: true, force: true }));
  await chmod(folder, 0o755);
  const options = { dataDir: join(folder, "data"), port: null, binaries, tell: () => {} };
  const cluster = opened.adopt(await startCluster(options), (started) => started.stop());
  const url = cluster.url("postgres", "postgres");
  await withClient(url, async (client) => {
    await client.query(TABLE);
    await client.query(fill(megabytes * ROWS_PER_MEGABYTE));
    await client.query("checkpoint");
  });
  const own = join(folder, "own.gz");
  const script = `const { writeArchive } = await import(${JSON.stringify(WRITER)});
    await writeArchive(${JSON.stringify(url)}, ${JSON.stringify(own)})`;
  const backup = await measure(process.execPath, ["--input-type=module", "--eval", script], own);
  const pgDump = findPgDump(major);
  const dump = join(folder, "pg.dump");
  return {
    backup,
    pgDump: pgDump === null ? null : await measure(join(pgDump, "pg_dump"), ["-Fc", `--file=${dump}`, url], dump),
  };
}

async function measure(program: string, words: readonly string[], file: string): Promise<MeasuredProgram> {
  const begin = performance.now();
  const running = spawn(program, words, { stdio: ["ignore", "ignore", "inherit"] });
  const memory = watchMemory(running.pid!);
  const [code] = await once(running, "exit");
  const seconds = (performance.now() - begin) / 1_000;
  const mebibytes = memory.stop();
  if (code !== 0) throw new Error(`${program} exited with ${code}`);
  return { seconds, mebibytes, fileBytes: (await stat(file)).size };
}
