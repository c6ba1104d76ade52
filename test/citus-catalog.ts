/**
 * The catalogue of a Citus coordinator, as Citus documents it: the extension, and the tables of distributed tables and of shards. No
 * package of Citus is there for the tests.
 */
export const CITUS = `
  set allow_system_table_mods = on;
  insert into pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
    values (99999, 'citus', 'postgres'::regrole, 'pg_catalog'::regnamespace, false, '12.1-1');
  create table pg_catalog.pg_dist_partition (
    logicalrelid regclass primary key, partmethod "char" not null, partkey text, colocationid int not null, repmodel "char" not null,
    autoconverted boolean not null
  );
  create table pg_catalog.pg_dist_shard (
    logicalrelid regclass not null, shardid int8 primary key, shardstorage "char" not null, shardminvalue text, shardmaxvalue text
  );
  grant select on pg_catalog.pg_dist_partition, pg_catalog.pg_dist_shard to public;
  reset allow_system_table_mods;`;

/** Makes a table a distributed one in the catalogue; its rows stay where they are. */
export function distribute(table: string, column: string, shards: readonly number[] = []): string {
  const rows = shards.map((shard) => `insert into pg_catalog.pg_dist_shard values ('${table}', ${shard}, 't');`);
  return `
    insert into pg_catalog.pg_dist_partition
    select '${table}', 'h', format('{VAR :varno 1 :varattno %s :vartype 23 :vartypmod -1}', attnum), 1, 's', false
    from pg_attribute where attrelid = '${table}'::regclass and attname = '${column}';
    ${rows.join(" ")}`;
}

/** Copies a table to every node in the catalogue. */
export function makeReference(table: string): string {
  return `insert into pg_catalog.pg_dist_partition values ('${table}', 'n', null, 2, 't', false);`;
}
