import { joinOwnSchema, objectLabel } from "./dump-schema.ts";

/** A property of an object that is not in its definition in the dump. */
export type ObjectSetting = {
  readonly object: string;
  readonly setting: string;
  /** Empty if there is none. */
  readonly statement: string;
  /** The statement for an object that does not have it; null if all have it. */
  readonly remove: string | null;
};

const ownRelations = joinOwnSchema("pg_class", "class.oid", "class.relnamespace");
const relationLabel = objectLabel("pg_class", "class.oid");
const typeLabel = objectLabel("pg_type", "type.oid");
const ownTypes = joinOwnSchema("pg_type", "type.oid", "type.typnamespace");
/** True for a sequence of a column, which has the owner of the table. */
const ofColumn =
  "exists (select from pg_depend where classid = 'pg_class'::regclass and objid = class.oid and deptype in ('i', 'a'))";
const storageName = (column: string) =>
  `case ${column} when 'p' then 'plain' when 'e' then 'external' when 'm' then 'main' else 'extended' end`;

const owners = `
  select ${relationLabel} as object, 'owner' as setting,
    format('alter table %s owner to %I', class.oid::regclass, pg_get_userbyid(relowner)) as statement, null as remove
  from pg_class as class ${ownRelations} where relkind in ('r', 'p', 'v', 'm', 'f') or relkind = 'S' and not ${ofColumn}
  union all
  select ${objectLabel("pg_namespace", "schema.oid")}, 'owner',
    format('alter schema %I owner to %I', schema.nspname, pg_get_userbyid(schema.nspowner)), null
  from pg_namespace as schema ${joinOwnSchema("pg_namespace", "schema.oid", "schema.oid")}
  union all
  select ${typeLabel}, 'owner', format('alter type %s owner to %I', format_type(type.oid, null), pg_get_userbyid(typowner)), null
  from pg_type as type ${ownTypes} where typtype in ('e', 'd', 'r')
  union all
  select ${objectLabel("pg_proc", "proc.oid")}, 'owner',
    format('alter routine %s owner to %I', proc.oid::regprocedure, pg_get_userbyid(proowner)), null
  from pg_proc as proc ${joinOwnSchema("pg_proc", "proc.oid", "proc.pronamespace")}`;

const domains = `
  select ${typeLabel}, 'default', format('alter domain %s set default %s', format_type(type.oid, null), typdefault),
    format('alter domain %s drop default', format_type(type.oid, null))
  from pg_type as type ${ownTypes} where typtype = 'd' and typdefault is not null
  union all
  select ${typeLabel}, 'not null', format('alter domain %s set not null', format_type(type.oid, null)),
    format('alter domain %s drop not null', format_type(type.oid, null))
  from pg_type as type ${ownTypes} where typtype = 'd' and typnotnull
  union all
  select ${typeLabel}, 'constraint ' || conname,
    format('alter domain %s add constraint %I %s', format_type(type.oid, null), conname, pg_get_constraintdef(constrained.oid)),
    format('alter domain %s drop constraint %I', format_type(type.oid, null), conname)
  from pg_constraint as constrained join pg_type as type on type.oid = contypid ${ownTypes} where contype = 'c'`;

const sequences = `
  select ${relationLabel}, 'limits', format('alter sequence %s as %s minvalue %s maxvalue %s start %s increment %s cache %s %s',
      class.oid::regclass, format_type(seqtypid, null), seqmin, seqmax, seqstart, seqincrement, seqcache,
      case when seqcycle then 'cycle' else 'no cycle' end), null
  from pg_class as class ${ownRelations} join pg_sequence on seqrelid = class.oid
  union all
  select ${relationLabel}, 'column',
    format('alter sequence %s owned by %s.%I', class.oid::regclass, refobjid::regclass, attname),
    format('alter sequence %s owned by none', class.oid::regclass)
  from pg_class as class ${ownRelations}
  join pg_depend on classid = 'pg_class'::regclass and objid = class.oid and refclassid = 'pg_class'::regclass and deptype = 'a'
  join pg_attribute on attrelid = refobjid and attnum = refobjsubid
  where relkind = 'S'`;

const storage = `
  select ${relationLabel}, 'option ' || split_part(option, '=', 1),
    format('alter table %s set (%s=%L)', class.oid::regclass, split_part(option, '=', 1), substr(option, strpos(option, '=') + 1)),
    format('alter table %s reset (%s)', class.oid::regclass, split_part(option, '=', 1))
  from pg_class as class ${ownRelations} cross join lateral unnest(reloptions) as option where relkind in ('r', 'p', 'm')
  union all
  select ${relationLabel}, 'persistence', format('alter table %s set %s', class.oid::regclass, case relpersistence when 'u' then 'unlogged' else 'logged' end), null
  from pg_class as class ${ownRelations} where relkind = 'r'
  union all
  select ${relationLabel}, 'tablespace', format('alter table %s set tablespace %I', class.oid::regclass, coalesce(spcname, 'pg_default')), null
  from pg_class as class ${ownRelations} left join pg_tablespace on pg_tablespace.oid = reltablespace where relkind in ('r', 'm')
  union all
  select ${relationLabel}, 'access method', format('alter table %s set access method %I', class.oid::regclass, amname), null
  from pg_class as class ${ownRelations} join pg_am on pg_am.oid = relam where relkind in ('r', 'm')
  union all
  select ${relationLabel}, 'populated', '', null
  from pg_class as class ${ownRelations} where relkind = 'm' and not relispopulated
  union all
  select ${relationLabel}, 'foreign table ' || coalesce(ftoptions::text, ''), '', null
  from pg_class as class ${ownRelations} join pg_foreign_table on ftrelid = class.oid
  union all
  select ${relationLabel}, 'replica identity', format('alter table %s replica identity using index %I', class.oid::regclass, other.relname),
    format('alter table %s replica identity default', class.oid::regclass)
  from pg_class as class ${ownRelations} join pg_index on indrelid = class.oid and indisreplident join pg_class as other on other.oid = indexrelid
  union all
  select ${relationLabel}, 'cluster', format('alter table %s cluster on %I', class.oid::regclass, other.relname),
    format('alter table %s set without cluster', class.oid::regclass)
  from pg_class as class ${ownRelations} join pg_index on indrelid = class.oid and indisclustered join pg_class as other on other.oid = indexrelid`;

const columnPart = (action: string) => `'alter table %s alter column %I ${action}', class.oid::regclass, attname`;
const ownColumns = `pg_class as class ${ownRelations} join pg_attribute on attrelid = class.oid and attnum > 0 and not attisdropped`;

const columns = `
  select ${relationLabel}, 'storage of ' || attname, format(${columnPart("set storage %s")}, ${storageName("attstorage")}),
    format(${columnPart("set storage %s")}, ${storageName("typstorage")})
  from ${ownColumns} join pg_type on pg_type.oid = atttypid where relkind in ('r', 'p', 'm', 'f') and attstorage <> typstorage
  union all
  select ${relationLabel}, 'compression of ' || attname,
    format(${columnPart("set compression %s")}, case attcompression when 'p' then 'pglz' else 'lz4' end),
    format(${columnPart("set compression default")})
  from ${ownColumns} where relkind in ('r', 'p', 'm') and attcompression in ('p', 'l')
  union all
  select ${relationLabel}, 'statistics of ' || attname, format(${columnPart("set statistics %s")}, attstattarget),
    format(${columnPart("set statistics -1")})
  from ${ownColumns} where relkind in ('r', 'p', 'm', 'f') and attstattarget >= 0
  union all
  select ${relationLabel}, 'option of ' || attname || ': ' || split_part(option, '=', 1), format(${columnPart("set (%s)")}, option),
    format(${columnPart("reset (%s)")}, split_part(option, '=', 1))
  from ${ownColumns} cross join lateral unnest(attoptions) as option where relkind in ('r', 'p', 'm', 'f')
  union all
  select ${relationLabel}, 'default of ' || attname, format(${columnPart("set default %s")}, pg_get_expr(adbin, adrelid)),
    format(${columnPart("drop default")})
  from ${ownColumns} join pg_attrdef on adrelid = attrelid and adnum = attnum where relkind = 'v'`;

const extensions = `
  select 'extension ' || quote_ident(extname), 'version', format('alter extension %I update to %L', extname, extversion), null from pg_extension`;

/** Rows with the columns of `ObjectSetting`. Runs with an empty search path. */
export const OBJECT_SETTINGS = [owners, domains, sequences, storage, columns, extensions].join("\n  union all\n");

/** Objects that are not in the dump, and can only be compared for equality. */
const OPAQUE_CATALOGUES = [
  ...[
    "pg_operator",
    "pg_opclass",
    "pg_opfamily",
    "pg_amop",
    "pg_amproc",
    "pg_am",
    "pg_cast",
    "pg_collation",
    "pg_conversion",
  ],
  ...[
    "pg_language",
    "pg_transform",
    "pg_foreign_data_wrapper",
    "pg_foreign_server",
    "pg_publication",
    "pg_publication_rel",
  ],
  ...["pg_publication_namespace", "pg_statistic_ext", "pg_ts_config", "pg_ts_dict", "pg_ts_parser", "pg_ts_template"],
  "pg_rewrite",
];

export const opaqueObjects = OPAQUE_CATALOGUES.map(
  (catalogue) => `
  select replace(${objectLabel(catalogue, "known.oid")}, 'statistics object ', 'statistics ') as object, '-- ' || md5((known.*)::text) as statement
  from ${catalogue} as known
  where known.oid >= 16384 ${catalogue === "pg_rewrite" ? "and rulename <> '_RETURN'" : ""} and not exists (
    select from pg_depend where classid = '${catalogue}'::regclass and objid = known.oid and deptype = 'e'
  )`,
).join("\n  union all\n");
