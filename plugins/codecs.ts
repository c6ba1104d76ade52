import { isEnumCodec } from "@dataplan/pg";
import { type SQL, sql } from "@dataplan/pg/pg-sql2";
import type { Codec } from "./table.ts";

type FindCodecEvent = Parameters<GraphileConfig.GatherHooks["pgCodecs_findPgCodec"]>[0];

/** A gather hook that uses these codecs, by type name, for the types of `pg_catalog`. */
export function findBuiltInCodec(
  codecs: Readonly<Record<string, Codec>>,
): (info: unknown, event: FindCodecEvent) => void {
  return (_info, event) => {
    const { pgType } = event;
    if (event.pgCodec || pgType.getNamespace()?.nspname !== "pg_catalog") return;
    event.pgCodec = codecs[pgType.typname] ?? null;
  };
}

/** The codec beneath all domains. */
export function baseCodecOf(codec: Codec): Codec {
  return codec.domainOfCodec ? baseCodecOf(codec.domainOfCodec) : codec;
}

/** The column and its codec in a form that can be compared: Postgres has no operators for a domain over an enum. */
export function castToComparable(column: SQL, codec: Codec): readonly [SQL, Codec] {
  if (!codec.domainOfCodec || !isEnumCodec(codec)) return [column, codec];
  const baseCodec = baseCodecOf(codec);
  return [sql`${column}::${baseCodec.sqlType}`, baseCodec];
}

/** A codec's `listCastFromPg`: applies the cast to each item and returns the array as text. */
export function castListItems(cast: (item: SQL) => SQL): (list: SQL) => SQL {
  return (list) => {
    const item = sql.identifier(Symbol("item"));
    return sql`(case when ${list} is null then null else array(select ${cast(item)} from unnest(${list}) as ${item})::text end)`;
  };
}
