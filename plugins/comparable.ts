import { isEnumCodec } from "postgraphile/@dataplan/pg";
import { type SQL, sql } from "postgraphile/@dataplan/pg/pg-sql2";
import type { Codec } from "./table.ts";

/** A column as it can be compared, with its type then: Postgres has no operators for a domain over an enum. */
export function comparable(column: SQL, codec: Codec): readonly [SQL, Codec] {
  if (!codec.domainOfCodec || !isEnumCodec(codec)) return [column, codec];
  const below = undomained(codec);
  return [sql`${column}::${below.sqlType}`, below];
}

function undomained(codec: Codec): Codec {
  return codec.domainOfCodec ? undomained(codec.domainOfCodec) : codec;
}
