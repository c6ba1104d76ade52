import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Config } from "#config";
import type { DoctorFinding } from "#operations/doctor";
import { withServiceClient } from "#postgres/client";
import { type SqlFunction, toHookFunction } from "./sign-in-hooks.ts";
import { importConfig } from "./supabase-config.ts";

/** The settings of config.toml that enable a feature here, too. */
const SWITCHES: readonly { readonly setting: string; readonly isOn: (config: Config) => boolean }[] = [
  { setting: "AUTH_ANONYMOUS_SIGN_INS", isOn: ({ anonymousSignIns }) => anonymousSignIns },
  { setting: "AUTH_MANUAL_LINKING", isOn: ({ manualLinking }) => manualLinking },
  { setting: "AUTH_SIGN_UPS", isOn: ({ signUps }) => signUps },
];

const FUNCTION_EXISTS = `
  select from pg_catalog.pg_proc join pg_catalog.pg_namespace on pg_namespace.oid = pronamespace
  where nspname operator(pg_catalog.=) $1 and proname operator(pg_catalog.=) $2 limit 1`;

/** Lists the settings of supabase/config.toml that have no effect here; empty if there is no such file. */
export async function readConfigFindings(folder: string, config: Config, url: string): Promise<DoctorFinding[]> {
  const file = join(folder, "supabase/config.toml");
  if (!existsSync(file)) return [];
  const { settings, hooks } = importConfig(await readFile(file, "utf8"));
  const findings: DoctorFinding[] = SWITCHES.filter(
    ({ setting, isOn }) => settings[setting] === "true" && !isOn(config),
  ).map(({ setting }) => ({
    kind: "advice",
    problem: `supabase/config.toml asks for what ${setting} has off.`,
    fix: `Set ${setting}=true, or change config.toml.`,
  }));
  const functions = Object.values(hooks).flatMap(({ isEnabled, address }) => {
    const hook = isEnabled ? toHookFunction(address) : null;
    return hook === null ? [] : [hook];
  });
  const missing = functions.length === 0 ? [] : await findMissing(url, functions);
  return [
    ...findings,
    ...missing.map(
      ({ schema, name }): DoctorFinding => ({
        kind: "advice",
        problem: `supabase/config.toml names the hook ${schema}.${name}, which does not exist.`,
        fix: "Create the function in a migration, or disable the hook.",
      }),
    ),
  ];
}

function findMissing(url: string, functions: readonly SqlFunction[]): Promise<SqlFunction[]> {
  const missing: SqlFunction[] = [];
  return withServiceClient(url, async (client) => {
    for (const hook of functions) {
      const { rowCount } = await client.query(FUNCTION_EXISTS, [hook.schema, hook.name]);
      if (rowCount === 0) missing.push(hook);
    }
    return missing;
  });
}
