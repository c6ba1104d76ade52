import { once } from "node:events";
// The package's main file loads all of its commands; importing one command halves the start time of the process.
import { migrate } from "graphile-migrate/dist/commands/migrate.js";
import pg from "pg";
import type { RunnerError, RunnerJob } from "./apply-migrations.ts";
import { setDefaultPrivileges } from "./default-privileges.ts";
import { HISTORY_SETTING } from "./migration-record.ts";

const [{ url, rootUrl, applicationName, histories }] = (await once(process, "message")) as [RunnerJob];

// The parent process has ended.
process.once("disconnect", () => process.exit(1));

for (const { name, folder, searchPath, lockTimeoutMs, settings } of histories) {
  try {
    await setPrivileges(name);
    await migrate({
      connectionString: url,
      rootConnectionString: rootUrl,
      migrationsFolder: folder,
      pgSettings: {
        ...settings,
        [HISTORY_SETTING]: name,
        search_path: searchPath,
        application_name: applicationName,
        lock_timeout: String(lockTimeoutMs),
      },
    });
  } catch (error) {
    const { message, ...fields } = error as Error & Record<string, unknown>;
    const fault: RunnerError = { history: name, error: { ...fields, message } };
    process.send!(fault, () => process.exit(1));
    await new Promise(() => {});
  }
}

// graphile-migrate would keep its connections open for a while.
process.exit(0);

async function setPrivileges(history: string): Promise<void> {
  const client = new pg.Client(url).on("error", () => {});
  await client.connect();
  try {
    await setDefaultPrivileges(client, history);
  } finally {
    await client.end();
  }
}
