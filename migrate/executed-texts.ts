import type pg from "pg";
import type { MeasuredStates } from "./measure-statement.ts";

const DEFINES_OBJECTS =
  /^(create\s+(?!((local|global|temp|temporary|unlogged)\s+)*(table|materialized)\b)|alter|drop|comment|grant|revoke)\b/i;

type CalledCode = {
  readonly functions: readonly { readonly oid: number; readonly name: string; readonly body: string }[];
  readonly triggers: readonly { readonly table: number; readonly function: number }[];
  /** The default expressions of columns. */
  readonly defaults: readonly { readonly table: number; readonly expression: string }[];
};

const CALLED_CODE = `select
  (select coalesce(pg_catalog.json_agg(pg_catalog.json_build_object('oid', oid::pg_catalog.int8, 'name', pg_catalog.lower(proname),
    'body', coalesce(pg_catalog.pg_get_function_sqlbody(oid), prosrc))), '[]')
    from pg_catalog.pg_proc where oid >= 16384 and prokind in ('f', 'p')) as functions,
  (select coalesce(pg_catalog.json_agg(pg_catalog.json_build_object('table', tgrelid::pg_catalog.int8, 'function', tgfoid::pg_catalog.int8)), '[]')
    from pg_catalog.pg_trigger where not tgisinternal) as triggers,
  (select coalesce(pg_catalog.json_agg(pg_catalog.json_build_object('table', adrelid::pg_catalog.int8, 'expression', pg_catalog.pg_get_expr(adbin, adrelid))), '[]')
    from pg_catalog.pg_attrdef where adrelid >= 16384) as defaults`;

/** The texts of the statement and of the functions, triggers and defaults that it may run, also indirectly. None if it only defines objects. */
export async function readExecutedTexts(client: pg.ClientBase, states: MeasuredStates): Promise<readonly string[]> {
  const sql = readCode(states.sql);
  if (DEFINES_OBJECTS.test(sql)) return [];
  const { rows } = await client.query<CalledCode>(CALLED_CODE);
  const { functions, triggers, defaults } = rows[0]!;
  const written = new Set(listWrittenTables(states));
  const fired = new Set(triggers.filter(({ table }) => written.has(table)).map((trigger) => trigger.function));
  const texts = [sql, ...defaults.filter(({ table }) => written.has(table)).map(({ expression }) => expression)];
  const seen = new Set<number>();
  for (const text of texts) {
    const called = new Set(Array.from(text.toLowerCase().matchAll(/([\w$]+)"?\s*\(/g), ([, name]) => name!));
    for (const { oid, name, body } of functions) {
      if (seen.has(oid) || !(fired.has(oid) || called.has(name))) continue;
      seen.add(oid);
      texts.push(readCode(body));
    }
  }
  return texts;
}

function listWrittenTables({ before, after }: MeasuredStates): number[] {
  return [...after.values()]
    .filter(({ oid, modes, inserted, changed }) => {
      const was = before.get(oid);
      if (!modes.includes("RowExclusiveLock")) return false;
      return !was?.modes.includes("RowExclusiveLock") || inserted > was.inserted || changed > was.changed;
    })
    .map(({ oid }) => oid);
}

const RUNS_STRINGS = /\bexecute\b|^do\s+(language\s+\w+\s+)?'/i;

/** Removes comments, and also strings unless they may be a block's body or statements that it runs. */
function readCode(sql: string): string {
  const text = sql.replaceAll(/--[^\n]*|\/\*[\s\S]*?\*\//g, " ").trim();
  return RUNS_STRINGS.test(text) ? text : text.replaceAll(/'(?:[^']|'')*'/g, " ");
}
