import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../bench/measuring/free-port.ts";
import { chooseAccount, chownTo, spawnAs } from "../../cluster/embedded/processes.ts";
import { REPOSITORY } from "../repository.ts";
import { until } from "../until.ts";
import type { PostgresSocketAddress, Router } from "./router.ts";

export const PGBOUNCER = "/usr/sbin/pgbouncer";

const USERS = ["authenticator", "postgres"];

/** True if statements stay prepared through it: the one of Debian 12 forgets them. */
export function keepsStatements(): boolean {
  const version = execFileSync(PGBOUNCER, ["--version"], { encoding: "utf8" });
  const [, major = "0", minor = "0"] = /PgBouncer (\d+)\.(\d+)/.exec(version)!;
  return Number(major) > 1 || Number(minor) >= 21;
}

type PgBouncerOptions = { readonly poolSize?: number; readonly poolMode?: "transaction" | "statement" };

/** Starts PgBouncer with the configuration of `deploy/`, for all databases of the server. */
export async function startPgBouncer(
  postgres: PostgresSocketAddress,
  { poolSize = 10, poolMode = "transaction" }: PgBouncerOptions = {},
): Promise<Router> {
  const folder = await mkdtemp(join(tmpdir(), "pgbouncer-"));
  await chmod(folder, 0o755);
  const port = await freePort();
  const text = await readFile(join(REPOSITORY, "deploy/pgbouncer.ini"), "utf8");
  const own = text
    .replace("content = host=postgres port=5432 dbname=content", `* = host=${postgres.folder} port=${postgres.port}`)
    .replace("listen_addr = *", "listen_addr = 127.0.0.1")
    .replace("listen_port = 6432", `listen_port = ${port}`)
    .replace("auth_type = scram-sha-256", "auth_type = trust")
    .replace("/run/pgbouncer/users.txt", join(folder, "users.txt"))
    .replace("pool_mode = transaction", `pool_mode = ${poolMode}`)
    .replace("default_pool_size = 28", `default_pool_size = ${poolSize}`)
    .replace(/^max_prepared_statements.*$/m, (line) => (keepsStatements() ? line : ""));
  await writeFile(join(folder, "users.txt"), USERS.map((user) => `"${user}" ""\n`).join(""));
  await writeFile(join(folder, "pgbouncer.ini"), own);
  const account = await chooseAccount();
  for (const name of ["users.txt", "pgbouncer.ini"]) await chownTo(account, join(folder, name));
  // The run's Postgres lets nobody else near its socket.
  const child = await spawnAs(PGBOUNCER, [join(folder, "pgbouncer.ini")], account, postgres.folder);
  let log = "";
  child.stdout!.resume();
  child.stderr!.on("data", (chunk) => (log += chunk));
  await until(() => child.exitCode !== null || log.includes("process up"));
  if (child.exitCode !== null) throw new Error(log);
  return {
    port,
    settings: {},
    async close() {
      const ended = once(child, "close");
      child.kill("SIGTERM");
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}
