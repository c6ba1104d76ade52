import { isEnumCodec, sideEffectWithPgClient } from "postgraphile/@dataplan/pg";
import { lambda, type Step } from "postgraphile/grafast";
import { JUST_CHANGED } from "../engine/database/outdated.ts";
import { unavailable } from "../engine/errors.ts";
import { notAnId, withoutId } from "./id-codec.ts";
import type { Codec, Table } from "./table.ts";

/** What clients write as Postgres does. */
const SPELT_ONE_WAY: ReadonlySet<string> = new Set([
  "int2",
  "int4",
  "int8",
  "bool",
  "text",
  "varchar",
  "citext",
  "uuid",
]);

/** What a domain is made of, at last: whoever may not look into its schema cannot name it. */
const TYPE = `
  with recursive typed as (
    select atttypid as type, atttypmod as modifier from pg_attribute
    where attrelid = to_regclass(format('%I.%I', $1::text, $2::text)) and attname = $3
    union all
    select typbasetype, typtypmod from typed join pg_type on pg_type.oid = type where typtype = 'd'
  )
  select format_type(type, modifier) from typed join pg_type on pg_type.oid = type where typtype <> 'd'`;

/** The value of a column as events tell it: in Postgres's own words. Null for null. */
export function topicValue({ codec: row, executor, extensions }: Table, column: string, $value: Step): Step {
  const { codec } = row.attributes[column]!;
  if (isSpeltOneWay(codec)) return lambda($value, (value) => (value == null ? null : spell(codec, value)));

  return sideEffectWithPgClient(executor, $value, async (client, value): Promise<string | null> => {
    if (value == null) return null;
    const ask = async (text: string, values: unknown[]) =>
      (await client.query<string[]>({ text, values, arrayMode: true })).rows[0]?.[0];
    const { schemaName, name } = extensions!.pg!;
    const type = await ask(TYPE, [schemaName, name, column]);
    if (type === undefined) throw unavailable(JUST_CHANGED);
    return (await ask(`select to_jsonb($1::text::${type}) #>> '{}'`, [codec.toPg(value)]))!;
  });
}

function isSpeltOneWay(codec: Codec): boolean {
  if (codec.domainOfCodec) return isSpeltOneWay(codec.domainOfCodec);
  return isEnumCodec(codec) || SPELT_ONE_WAY.has(withoutId(codec).name);
}

function spell(codec: Codec, value: unknown): string {
  // JSON's true, not Postgres's t.
  const text = typeof value === "boolean" ? String(value) : codec.toPg(value);
  if (text === null) throw notAnId(value);
  return String(text);
}
