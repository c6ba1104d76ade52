import { once } from "node:events";
import { migrate } from "graphile-migrate";
import { withClient } from "#postgres/client";
import type { RunnerError, RunnerJob } from "./apply-migrations.ts";
import { HISTORY_SETTING } from "./migration-record.ts";

const [{ url, rootUrl, applicationName, histories }] = (await once(process, "message")) as [RunnerJob];

// The parent process has ended.
process.once("disconnect", () => process.exit(1));

/**
 * A project of Supabase has Postgres's own default: everybody may execute a new function. The functions of a release are closed, also in its
 * database. A process that is killed in between leaves them closed until the project's migrations are applied again.
 */
const CLOSE_FUNCTIONS = "alter default privileges revoke execute on functions from public";
const OPEN_FUNCTIONS = "alter default privileges grant execute on functions to public";
const IS_OPEN = `
  select pg_catalog.to_regclass('supabase_auth.identity_rows') is not null as opens`;

async function setDefaultPrivileges(history: string): Promise<void> {
  await withClient(url, async (client) => {
    const { rows } = await client.query<{ opens: boolean }>(IS_OPEN);
    if (rows[0]!.opens) await client.query(history === "project" ? OPEN_FUNCTIONS : CLOSE_FUNCTIONS);
  });
}

for (const { name, folder, searchPath, lockTimeoutMs } of histories) {
  try {
    await setDefaultPrivileges(name);
    await migrate({
      connectionString: url,
      rootConnectionString: rootUrl,
      migrationsFolder: folder,
      pgSettings: {
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
