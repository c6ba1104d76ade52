import pg from "pg";
import { LISTS_OF_NAMES } from "./quoted-name.ts";

/** Without it, Citus keeps what SET LOCAL sets on the node of the session. Other servers take it for a setting of an application. */
const PASS_SETTINGS_ON = "set local citus.propagate_set_commands = 'local'";
/** Postgres refuses it as it refuses a parameter with a zero byte: 22021. */
const INVALID_TEXT = "E'\\000'";
const LISTED_NAME = /"((?:[^"]|"")*)"|([^\s,"]+)/g;

export type Setting = readonly [name: string, value: string];

/**
 * Makes the statements that set settings for the transaction, on all nodes of Citus, whose workers check policies and do not get what a
 * function sets. Each has to be a query of its own: Citus sends the whole text of a query to its workers.
 */
export function makeCallerStatements(settings: readonly Setting[]): string[] {
  return [PASS_SETTINGS_ON, ...settings.map(([name, value]) => makeSettingStatement(name, value))];
}

export function makeSettingStatement(name: string, value: string): string {
  return `set local ${pg.escapeIdentifier(name)} = ${settingValue(name, value)}`;
}

/** Sets settings of a caller for the transaction. */
export async function applyCallerSettings(client: pg.ClientBase, settings: readonly Setting[]): Promise<void> {
  for (const statement of makeCallerStatements(settings)) await client.query(statement);
}

function settingValue(name: string, value: string): string {
  if (value.includes("\0")) return INVALID_TEXT;
  if (!LISTS_OF_NAMES.has(name)) return pg.escapeLiteral(value);
  const names = Array.from(
    value.matchAll(LISTED_NAME),
    ([, quoted, plain]) => quoted?.replaceAll('""', '"') ?? plain!.toLowerCase(),
  );
  return names.length === 0 ? "''" : names.map((listed) => pg.escapeLiteral(listed)).join(", ");
}
