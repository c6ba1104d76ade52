import type { AsOwner } from "../database/as-owner.ts";
import type { Config } from "./config.ts";

const IS_THERE = `
  select exists (
    select from pg_proc join pg_namespace on pg_namespace.oid = pronamespace
    where proname = $1 and nspname = any ($2)) as found`;

type Naming = Pick<Config, "preRequest" | "rootSpec" | "schemas" | "extraSearchPath">;

/** What the settings name and the database does not have, in words. It may yet be made: so nothing is refused for it here. */
export async function missingFunctions(asOwner: AsOwner, config: Naming): Promise<string[]> {
  const named = { PGRST_DB_PRE_REQUEST: config.preRequest, PGRST_DB_ROOT_SPEC: config.rootSpec };
  const isThere = async (name: string) => {
    const [schema, ...rest] = name.split(".");
    const places = rest.length > 0 ? [schema] : [...config.schemas, ...config.extraSearchPath, "pg_catalog"];
    const { rows } = await asOwner((client) => client.query<{ found: boolean }>(IS_THERE, [rest[0] ?? schema, places]));
    return rows[0]!.found;
  };
  const missing: string[] = [];
  for (const [setting, name] of Object.entries(named)) {
    if (name === null || (await isThere(name))) continue;
    missing.push(`${setting} names the function ${name}, which does not exist: requests that call it are refused`);
  }
  return missing;
}
