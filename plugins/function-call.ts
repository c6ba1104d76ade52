import { type PgCodec, TYPES } from "@dataplan/pg";
import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import type { ResultRow } from "#postgres/statement";
import type { PgTable, SchemaResource } from "./table.ts";

declare global {
  namespace GraphileBuild {
    interface PgResourceTags {
      /** Marks a table or function that creates users, whose number SIGN_UP_LIMIT bounds. */
      signUp: true;
    }
  }
}

/** The setting that holds the result of a call, or the key of a written row, for the statement sent after it. */
export const RESULT_SETTING = "mutation.result";

/** Thrown if the result of a mutation's function says that it was not successful. */
export class UnsuccessfulResult extends Error {
  override name = "UnsuccessfulResult";
  /** The faults that the result lists, if any. */
  readonly faults: unknown;

  constructor([message, faults]: ResultRow) {
    super(message ?? "The mutation was not successful.");
    this.faults = faults == null ? null : JSON.parse(faults);
  }
}

/**
 * The text of a statement that returns the message and the faults of the kept result if it says that the call was not successful: its
 * composite type has a boolean `success`, which is false. Null for functions with other results.
 */
export function failureTextOf(resource: SchemaResource): string | null {
  const { codec, isUnique } = resource;
  const { attributes } = codec;
  const isReport = isUnique && attributes && !codec.extensions?.isTableLike && fitsInSetting(resource);
  if (!isReport || attributes.success?.codec !== TYPES.boolean) return null;
  const row = sql.identifier(Symbol("result"));
  const message = attributes.message ? sql`${row}."message"::pg_catalog.text` : sql`null`;
  const faults = attributes.errors ? sql`pg_catalog.to_json(${row}."errors")::pg_catalog.text` : sql`null`;
  return sql.compile(
    sql`select ${message}, ${faults} from ${resultRows(resource)} as ${row} where ${row}."success" = false`,
  ).text;
}

/** True for a table or function that creates users. */
export function isSignUp({ extensions }: SchemaResource): boolean {
  return Boolean(extensions?.tags?.signUp);
}

/** A statement that calls the function and keeps its result. */
export function keepResult(call: SQL): SQL {
  return sql`select pg_catalog.set_config(${sql.literal(RESULT_SETTING)}, array(select ${call})::pg_catalog.text, true)`;
}

/** A statement that writes a row and keeps the texts of its columns. */
export function keepRow(write: SQL, columns: readonly SQL[]): SQL {
  const written = sql.identifier(Symbol("written"));
  const texts = columns.map((column) => sql`${column}::pg_catalog.text`);
  return sql`with ${written}("texts") as (${write} returning array[${sql.join(texts, ", ")}]::pg_catalog.text)
    select pg_catalog.set_config(${sql.literal(RESULT_SETTING)}, (select "texts" from ${written}), true)`;
}

/** The kept row, or none when none was written. */
export function keptRow(columns: readonly { readonly name: string; readonly codec: PgCodec }[]): SQL {
  const kept = sql.identifier(Symbol("kept"));
  const values = columns.map(
    ({ name, codec }, index) =>
      sql`${kept}."texts"[${sql.literal(index + 1)}]::${codec.sqlType} as ${sql.identifier(name)}`,
  );
  return sql`(select ${sql.join(values, ", ")}
    from (select nullif(pg_catalog.current_setting(${sql.literal(RESULT_SETTING)}), '')::pg_catalog.text[] as "texts") as ${kept} where ${kept}."texts" is not null)`;
}

/** The kept row as a value of the table's type, whose text is all that was kept. */
export function keptRows({ codec }: PgTable): SQL {
  const texts = sql`nullif(pg_catalog.current_setting(${sql.literal(RESULT_SETTING)}), '')::pg_catalog.text[]`;
  return sql`pg_catalog.unnest((${texts})::${codec.sqlType}[])`;
}

/** The rows of the kept result. */
export function resultRows({ codec }: SchemaResource): SQL {
  return sql`pg_catalog.unnest(pg_catalog.current_setting(${sql.literal(RESULT_SETTING)})::${codec.sqlType}[])`;
}

/** True for a result with a named type that is no array: an array of arrays would lose its inner boundaries. */
export function fitsInSetting({ codec }: SchemaResource): boolean {
  return !codec.isAnonymous && !codec.arrayOfCodec && codec !== TYPES.void;
}
