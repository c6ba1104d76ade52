import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

export async function requirePgbench(): Promise<string> {
  try {
    return (await run("pgbench", ["--version"])).stdout.trim();
  } catch {
    throw new Error(
      "pgbench is not installed, and it is what we compare with. It comes with Postgres's server package: " +
        "`apt-get install postgresql` (then add /usr/lib/postgresql/*/bin to PATH) or `brew install postgresql`.",
    );
  }
}

export type PgbenchOptions = {
  readonly url: string;
  readonly script: string;
  readonly clients: number;
  readonly seconds: number;
  /** The values of `:name` in the script; pgbench sends them as parameters. */
  readonly variables?: Readonly<Record<string, string>>;
};

/** Returns transactions per second with prepared statements. */
export async function pgbench({ url, script, clients, seconds, variables = {} }: PgbenchOptions): Promise<number> {
  const folder = await mkdtemp(join(tmpdir(), "content-service-pgbench-"));
  const file = join(folder, "script.sql");
  try {
    await writeFile(file, script);
    const load = ["-c", String(clients), "-j", "2", "-T", String(seconds)];
    const given = Object.entries(variables).flatMap(([name, value]) => ["-D", `${name}=${value}`]);
    const { stdout } = await run("pgbench", ["-n", "-M", "prepared", ...load, ...given, "-f", file, url]);
    const failed = Number(/failed transactions: (\d+)/.exec(stdout)?.[1] ?? 0);
    if (failed > 0) throw new Error(`${failed} transactions failed:\n${stdout}`);
    return Number(/^tps = ([\d.]+)/m.exec(stdout)![1]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
