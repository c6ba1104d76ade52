import { spawn } from "node:child_process";
import { once } from "node:events";
import { reachPostgres } from "../engine/postgres.ts";
import { runCommand } from "./command.ts";

await runCommand({
  usage: "npm run psql [-- <arguments of psql>]   opens psql on the database as its owner",
  passOn: true,
  async run(config, words) {
    const postgres = await reachPostgres(config, (step) => console.error(step));
    try {
      const psql = spawn("psql", [postgres.ownerUrl, ...words], { stdio: "inherit" });
      const [code] = await once(psql, "close").catch((error: NodeJS.ErrnoException) => {
        if (error.code !== "ENOENT") throw error;
        throw new Error("psql is not installed: get it with apt-get install postgresql-client, or brew install libpq.");
      });
      process.exitCode = code ?? 1;
    } finally {
      await postgres.close();
    }
  },
});
