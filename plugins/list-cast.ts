import { type SQL, sql } from "postgraphile/@dataplan/pg/pg-sql2";

/** The `listCastFromPg` of a codec: the text of an array of what its cast makes of each item. */
export function castEach(cast: (item: SQL) => SQL): (list: SQL) => SQL {
  return (list) => {
    const item = sql.identifier(Symbol("item"));
    return sql`(case when ${list} is null then null else array(select ${cast(item)} from unnest(${list}) as ${item})::text end)`;
  };
}
