import type pg from "pg";
import { withClient } from "#postgres/client";

export type ClusterCheck = { readonly databases: number; readonly tables: number; readonly indexes: number };

/**
 * Reads every page of all tables and B-tree indexes, and compares each index with its table, as pg_amcheck does. Throws at the first
 * damage. Creates the extension in the databases: the cluster must be a temporary copy.
 */
export async function verifyCluster(urlOf: (role: string, database: string) => string): Promise<ClusterCheck> {
  const names = await withClient(urlOf("postgres", "postgres"), async (client) => {
    const { rows } = await client.query<{ name: string }>(
      "select datname as name from pg_catalog.pg_database where datallowconn and datname <> 'template0' order by 1",
    );
    return rows.map(({ name }) => name);
  });
  const counts = { databases: names.length, tables: 0, indexes: 0 };
  for (const name of names) {
    const { tables, indexes } = await withClient(urlOf("postgres", name), (client) => checkDatabase(client, name));
    counts.tables += tables;
    counts.indexes += indexes;
  }
  return counts;
}

async function checkDatabase(client: pg.Client, database: string): Promise<Omit<ClusterCheck, "databases">> {
  await client.query(
    "create schema amcheck_of_restore; create extension if not exists amcheck schema amcheck_of_restore",
  );
  const { rows: places } = await client.query<{ schema: string }>(
    "select extnamespace::pg_catalog.regnamespace::pg_catalog.text as schema from pg_catalog.pg_extension where extname = 'amcheck'",
  );
  const schema = places[0]!.schema;
  const { rows: relations } = await client.query<{ oid: number; name: string; kind: "i" | "r" }>(
    `select c.oid::pg_catalog.int8 as oid, c.oid::pg_catalog.regclass::pg_catalog.text as name, case c.relkind when 'i' then 'i' else 'r' end as kind
       from pg_catalog.pg_class c left join pg_catalog.pg_am on pg_am.oid = relam left join pg_catalog.pg_index on indexrelid = c.oid
      where relpersistence = 'p'
        and (relkind in ('r', 'm', 't') and amname = 'heap' or relkind = 'i' and amname = 'btree' and indisvalid)`,
  );
  const fail = (name: string, message: string) => {
    throw new Error(`In the restored database ${database}, ${name} is damaged: ${message}`);
  };
  for (const { oid, name, kind } of relations) {
    const statement =
      kind === "i"
        ? `select ${schema}.bt_index_check($1::pg_catalog.oid::pg_catalog.regclass, true)`
        : `select msg from ${schema}.verify_heapam($1::pg_catalog.oid::pg_catalog.regclass) limit 1`;
    const { rows } = await client
      .query<{ msg?: string }>(statement, [oid])
      .catch((error: pg.DatabaseError) => fail(name, error.message));
    if (kind === "r" && rows[0]?.msg !== undefined) fail(name, rows[0].msg);
  }
  const indexes = relations.filter(({ kind }) => kind === "i").length;
  return { tables: relations.length - indexes, indexes };
}
