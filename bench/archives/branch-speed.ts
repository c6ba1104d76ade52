import { execFile } from "node:child_process";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { EMBEDDED_DATABASE } from "#cluster";
import { startCluster } from "#cluster/embedded";
import { withClient } from "#postgres/client";
import { startGateway } from "../failover/gateway.ts";
import { freePort } from "../measuring/free-port.ts";
import { fill, ROWS_PER_MEGABYTE, TABLE } from "./large-table.ts";

const run = promisify(execFile);
const COMMAND = join(import.meta.dirname, "../../service/cli/branch.ts");

export type MeasuredBranch = {
  /** The kind of copy in the command's output: `copied by the file system`. */
  readonly copy: string;
  /** The duration of the whole command, which starts Postgres if no service runs. */
  readonly seconds: number;
};

export type MeasuredBranches = {
  readonly bytes: number;
  /** The copy while nobody uses the database. */
  readonly copied: MeasuredBranch;
  /** The time from the start of a service to its first ready response: on the branch, and on the database. */
  readonly readySeconds: { readonly branch: number; readonly database: number };
  /** The copy while a service uses the database. */
  readonly read: MeasuredBranch;
  readonly sampled: MeasuredBranch;
};

/** Measures branches of a database of about this size in the embedded Postgres. */
export async function measureBranches(megabytes: number): Promise<MeasuredBranches> {
  const folder = await mkdtemp(join(tmpdir(), "branch-speed-"));
  try {
    await chmod(folder, 0o755);
    const service = new MeasuredService(folder);
    await service.serve();
    const bytes = await service.fill(megabytes);
    const copied = await service.createBranch("copied");
    const branch = await service.serve({ DATABASE_BRANCH: "copied" });
    let [read, sampled]: MeasuredBranch[] = [];
    const database = await service.serve({}, async () => {
      read = await service.createBranch("read");
      sampled = await service.createBranch("sampled", "--sample", "1%");
    });
    return { bytes, copied, readySeconds: { branch, database }, read: read!, sampled: sampled! };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

class MeasuredService {
  readonly #logFile: string;
  readonly #settings: Readonly<Record<string, string>>;

  constructor(folder: string) {
    this.#logFile = join(folder, "service.log");
    this.#settings = { DATA_DIR: join(folder, "data"), BASE_SCHEMA: "platform" };
  }

  /** Runs the work while the service is up. Returns the seconds until it was ready. */
  async serve(settings: Readonly<Record<string, string>> = {}, work = async () => {}): Promise<number> {
    const port = await freePort();
    const begin = performance.now();
    await using _ = await startGateway({ ...this.#settings, ...settings }, port, this.#logFile);
    const seconds = (performance.now() - begin) / 1_000;
    await work();
    return seconds;
  }

  /** Fills the database; returns its size. */
  async fill(megabytes: number): Promise<number> {
    const cluster = await startCluster({ dataDir: this.#settings.DATA_DIR!, port: null, tell: () => {} });
    try {
      return await withClient(cluster.url("postgres", EMBEDDED_DATABASE), async (client) => {
        await client.query(TABLE);
        await client.query(fill(megabytes * ROWS_PER_MEGABYTE));
        await client.query("vacuum analyze public.orders");
        await client.query("checkpoint");
        const { rows } = await client.query<{ bytes: number }>(
          "select pg_database_size(current_database())::float8 as bytes",
        );
        return rows[0]!.bytes;
      });
    } finally {
      await cluster.stop();
    }
  }

  async createBranch(...words: readonly string[]): Promise<MeasuredBranch> {
    const begin = performance.now();
    const { stdout } = await run(process.execPath, [COMMAND, "create", ...words], {
      env: { PATH: process.env.PATH, ...this.#settings },
    });
    const seconds = (performance.now() - begin) / 1_000;
    return { copy: /\((.*)\)/.exec(stdout)![1]!, seconds };
  }
}
