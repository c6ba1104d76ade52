import { mkdtemp, readdir, readFile, readlink, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { startCluster } from "../engine/embedded/cluster.ts";

export type Scratch = AsyncDisposable & {
  url(role: string): string;
  /** Processor time that Postgres has used so far, in microseconds; null where /proc does not tell. */
  processorTime(): Promise<number | null>;
};

/** A cluster of its own, as the service would start it: durable, over a unix socket. */
export async function startScratch(schema: string): Promise<Scratch> {
  const dataDir = await mkdtemp(join(tmpdir(), "content-service-bench-"));
  const cluster = await startCluster({ dataDir, port: null, tell: () => {} });
  const url = (role: string) => cluster.url(role, "postgres");
  const client = new pg.Client({ connectionString: url("postgres") });
  await client.connect();
  await client.query(schema);
  await client.query("vacuum analyze");
  await client.query("checkpoint");
  await client.end();
  const stop = async () => {
    await cluster.stop();
    await rm(dataDir, { recursive: true, force: true });
  };
  return { url, processorTime: () => processorTime(join(dataDir, "postgres")), [Symbol.asyncDispose]: stop };
}

/** Postgres makes its data folder the working directory of each of its processes. */
async function processorTime(folder: string): Promise<number | null> {
  const pids = await readdir("/proc").catch(() => []);
  const ticks = await Promise.all(
    pids
      .filter((pid) => /^\d+$/.test(pid))
      .map(async (pid) => {
        if ((await readlink(`/proc/${pid}/cwd`).catch(() => "")) !== folder) return 0;
        const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
        // Behind the name: utime and stime of the process, then of its children that have ended.
        const fields = stat
          .slice(stat.lastIndexOf(")") + 2)
          .split(" ")
          .map(Number);
        return stat === "" ? 0 : fields[11]! + fields[12]! + fields[13]! + fields[14]!;
      }),
  );
  const sum = ticks.reduce((total, one) => total + one, 0);
  return sum > 0 ? sum * 10_000 : null;
}
