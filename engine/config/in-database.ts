import pg from "pg";
import { toSettings } from "../catalog/roles.ts";
import { quotedName } from "../quoted-name.ts";
import { withClient } from "../with-client.ts";
import { ConfigError } from "./config.ts";
import { IN_DATABASE } from "./settings.ts";

/** Settings that the database gives, by the names that SQL knows: `pgrst.db_schemas`. */
export type DatabaseSettings = ReadonlyMap<string, string>;

/** Those of the login for all databases come first, so that those for this one win. */
const OF_LOGIN = `
  select unnest(setconfig) as setting
  from pg_db_role_setting
  where setrole = (select oid from pg_roles where rolname = session_user)
    and setdatabase in (0, (select oid from pg_database where datname = current_database()))
  order by setdatabase <> 0`;

const AFTER_FUNCTION = "select name, current_setting(name, true) as value from unnest($1::text[]) as name";

/**
 * What `alter role … set pgrst.…` says of the login, and where that is silent what the function of PGRST_DB_PRE_CONFIG
 * sets. The login is asked itself, on a connection of its own: the function runs with its rights, and leaves nothing behind.
 */
export function readDatabaseSettings(url: string, preConfig: string | null): Promise<DatabaseSettings> {
  return withClient(url, async (client) => {
    await client.query("begin read only");
    const { rows } = await client.query<{ setting: string }>(OF_LOGIN);
    const said = new Map([...toSettings(rows)].filter(([name]) => name.startsWith("pgrst.")));
    const name = said.get("pgrst.db_pre_config") || preConfig;
    return name ? new Map([...(await readByFunction(client, name)), ...said]) : said;
  });
}

async function readByFunction(client: pg.Client, name: string): Promise<[string, string][]> {
  try {
    await client.query(`select ${quotedName(...name.split("."))}()`);
  } catch (error) {
    if (!(error instanceof pg.DatabaseError)) throw error;
    throw new ConfigError(`The function ${name} (PGRST_DB_PRE_CONFIG) failed: ${error.message}`, { cause: error });
  }
  const { rows } = await client.query<{ name: string; value: string | null }>(AFTER_FUNCTION, [
    [...IN_DATABASE.keys()],
  ]);
  return rows.flatMap(({ name, value }) => (value === null ? [] : [[name, value]]));
}
