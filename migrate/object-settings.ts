import {
  isOwn,
  objectLabel,
  ownedSequencesQuery,
  ownerQuery,
  SCHEMA_PUBLIC,
  SEQUENCE_OPTIONS,
} from "#catalog/definitions";

/** A property of an object that is not in its definition, or can be changed where the object cannot be created again. */
export type ObjectSetting = {
  readonly object: string;
  readonly setting: string;
  /** Empty if there is none. */
  readonly statement: string;
  /** The statement for an object that does not have it; null if all have it. */
  readonly remove: string | null;
};

const relationLabel = objectLabel("pg_class", "class.oid");
const OWN_RELATION = `${isOwn("pg_class", "class.oid")} and relpersistence <> 't'`;
const typeLabel = objectLabel("pg_type", "type.oid");
const ownTypes = isOwn("pg_type", "type.oid");

const owners = `
  select object, 'owner' as setting, statement, null as remove
  from (${ownerQuery({ isArchive: false }, (catalog) => catalog !== "pg_largeobject_metadata")}) as owned
  union all
  select 'schema public', 'owner', format('alter schema public owner to %I', pg_get_userbyid(nspowner)), null
  from pg_namespace where oid = ${SCHEMA_PUBLIC}`;

const domains = `
  select ${typeLabel}, 'default', format('alter domain %s set default %s', format_type(type.oid, null), typdefault),
    format('alter domain %s drop default', format_type(type.oid, null))
  from pg_type as type where ${ownTypes} and typtype = 'd' and typdefault is not null
  union all
  select ${typeLabel}, 'not null', format('alter domain %s set not null', format_type(type.oid, null)),
    format('alter domain %s drop not null', format_type(type.oid, null))
  from pg_type as type where ${ownTypes} and typtype = 'd' and typnotnull
  union all
  select ${typeLabel}, 'constraint ' || conname,
    format('alter domain %s add constraint %I %s', format_type(type.oid, null), conname, pg_get_constraintdef(constrained.oid)),
    format('alter domain %s drop constraint %I', format_type(type.oid, null), conname)
  from pg_constraint as constrained join pg_type as type on type.oid = contypid where ${ownTypes} and contype = 'c'`;

/** Those of identity and serial columns, too. */
const sequences = `
  select ${relationLabel}, 'limits',
    format(
      'alter sequence %s as %s %s%s', class.oid::regclass, format_type(seqtypid, null), ${SEQUENCE_OPTIONS},
      case when not seqcycle then ' no cycle' end
    ), null
  from pg_class as class join pg_sequence on seqrelid = class.oid where ${OWN_RELATION}
  union all
  select object, 'column', statement, remove from (${ownedSequencesQuery}) as owned`;

const storage = `
  select ${relationLabel}, 'tablespace',
    format('alter table %s set tablespace %I', class.oid::regclass, coalesce(spcname, 'pg_default')), null
  from pg_class as class left join pg_tablespace on pg_tablespace.oid = reltablespace
  where relkind in ('r', 'm') and ${OWN_RELATION}
  union all
  select ${relationLabel}, 'populated', '', null
  from pg_class as class where relkind = 'm' and not relispopulated and ${OWN_RELATION}`;

const extensions = `
  select 'extension ' || quote_ident(extname), 'version', format('alter extension %I update to %L', extname, extversion), null from pg_extension`;

/** Rows with the columns of `ObjectSetting`. Runs with an empty search path. */
export const OBJECT_SETTINGS = [owners, domains, sequences, storage, extensions].join("\n  union all\n");

/** Objects without a definition, which can only be compared for equality. */
const OPAQUE_CATALOGUES = [
  "pg_opclass",
  "pg_opfamily",
  "pg_amop",
  "pg_amproc",
  "pg_am",
  "pg_conversion",
  "pg_language",
  "pg_transform",
  "pg_ts_parser",
  "pg_ts_template",
];

const opaque = OPAQUE_CATALOGUES.map(
  (catalogue) => `
  select ${objectLabel(catalogue, "known.oid")} as object, '-- ' || md5((known.*)::text) as statement
  from ${catalogue} as known
  where ${isOwn(catalogue, "known.oid")}`,
).join("\n  union all\n");

/** A query of `SchemaRow`. */
export const opaqueObjects = `
  select object, object as name, statement as text, statement, 'drop ' || object as remove, null as replacement
  from (${opaque}) as known`;
