import { spawn } from "node:child_process";
import { once } from "node:events";
import { reachPostgres } from "#cluster";
import { commandLine } from "#runtime";
import { runCommand } from "./command/command.ts";

/** Splits the password off, because process lists show arguments to all users, but the environment only to the same user. */
function splitPassword(url: string): { address: string; password: string | null } {
  const match = /^(\w+:\/\/[^:@/]*):([^@/]*)@/.exec(url);
  if (!match) return { address: url, password: null };
  return { address: url.replace(match[0], `${match[1]}@`), password: decodeURIComponent(match[2]!) };
}

await runCommand({
  usage: `${commandLine("psql")}
  Opens psql as the database owner. Arguments are passed to psql; its exit code is returned.

Example:
  ${commandLine("psql", '-c "\\d"')}`,
  passThrough: true,
  async run(config, args) {
    const postgres = await reachPostgres(config, (step) => console.error(step));
    try {
      // Ctrl-C cancels a statement in psql and must not end this process.
      process.on("SIGINT", () => {});
      const { address, password } = splitPassword(postgres.clientUrl);
      const env = { ...process.env, ...(password && { PGPASSWORD: password }) };
      const psql = spawn("psql", [address, ...args], { stdio: "inherit", env });
      const [code] = await once(psql, "close").catch((error: NodeJS.ErrnoException) => {
        if (error.code !== "ENOENT") throw error;
        throw new Error(
          "psql is not installed. Install it with apt-get install postgresql-client or brew install libpq.",
        );
      });
      process.exitCode = code ?? 1;
    } finally {
      await postgres.close();
    }
  },
});
