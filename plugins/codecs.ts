import { isEnumCodec } from "postgraphile/@dataplan/pg";
import { type SQL, sql } from "postgraphile/@dataplan/pg/pg-sql2";
import type { Codec } from "./table.ts";

/** A column as it can be compared, with its type then: Postgres has no operators for a domain over an enum. */
export function castToComparable(column: SQL, codec: Codec): readonly [SQL, Codec] {
  if (!codec.domainOfCodec || !isEnumCodec(codec)) return [column, codec];
  const baseCodec = baseCodecOf(codec);
  return [sql`${column}::${baseCodec.sqlType}`, baseCodec];
}

function baseCodecOf(codec: Codec): Codec {
  return codec.domainOfCodec ? baseCodecOf(codec.domainOfCodec) : codec;
}

/** The `listCastFromPg` of a codec: the text of an array of what its cast makes of each item. */
export function castListItems(cast: (item: SQL) => SQL): (list: SQL) => SQL {
  return (list) => {
    const item = sql.identifier(Symbol("item"));
    return sql`(case when ${list} is null then null else array(select ${cast(item)} from unnest(${list}) as ${item})::text end)`;
  };
}
