import { identifier, type Sql, sql } from "./sql.ts";

/** Names that are words of SQL and not names of types: quoted they would mean nothing, or something else. */
const WORDS: ReadonlyMap<string, Sql> = new Map([
  ["bigint", sql`bigint`],
  ["bit", sql`bit`],
  ["bit varying", sql`bit varying`],
  ["boolean", sql`boolean`],
  ["char", sql`character`],
  ["char varying", sql`character varying`],
  ["character", sql`character`],
  ["character varying", sql`character varying`],
  ["dec", sql`numeric`],
  ["decimal", sql`numeric`],
  ["double precision", sql`double precision`],
  ["float", sql`double precision`],
  ["int", sql`integer`],
  ["integer", sql`integer`],
  ["national char", sql`character`],
  ["national character", sql`character`],
  ["nchar", sql`character`],
  ["real", sql`real`],
  ["smallint", sql`smallint`],
  ["time with time zone", sql`time with time zone`],
  ["time without time zone", sql`time without time zone`],
  ["timestamp with time zone", sql`timestamp with time zone`],
  ["timestamp without time zone", sql`timestamp without time zone`],
]);

/** A type as a client writes it, in any case as SQL allows; one that there is not is refused by Postgres (42704). */
export function typeName(written: string): Sql {
  const name = written.trim().replace(/\s+/g, " ").toLowerCase();
  return WORDS.get(name) ?? identifier(name);
}
