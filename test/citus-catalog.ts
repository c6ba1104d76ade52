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

/**
 * The functions of a coordinator that define objects on other nodes: here they record their calls in `nodes.calls`, with the setting that
 * keeps definitions local. `nodes.refusal` is what the only worker answers to a command; without it the command is taken to succeed.
 */
export const CITUS_NODES = `
  ${CITUS}
  create schema nodes;
  create table nodes.calls (id int generated always as identity, function text, argument text, propagates text);
  create table nodes.refusal (reason text);
  set allow_system_table_mods = on;
  create table pg_catalog.pg_dist_local_group (groupid int primary key);
  insert into pg_catalog.pg_dist_local_group values (0);
  create function pg_catalog.run_command_on_workers(command text, parallel boolean default true)
    returns table (nodename text, nodeport int, success boolean, result text) language plpgsql as $$ begin
      insert into nodes.calls (function, argument, propagates)
        values ('run_command_on_workers', command, current_setting('citus.enable_ddl_propagation', true));
      return query select 'first', 5432, reason is null, coalesce(reason, 'DO') from (select) as worker left join nodes.refusal on true;
    end $$;
  create function pg_catalog.create_distributed_function(
    function_name regprocedure, distribution_arg_name text default null, colocate_with text default 'default', force_delegation bool default null
  ) returns void language sql as $$
    insert into nodes.calls (function, argument, propagates)
      values ('create_distributed_function', function_name::text, current_setting('citus.enable_ddl_propagation', true))
  $$;
  reset allow_system_table_mods;`;
