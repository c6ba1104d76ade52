import {
  isOwn,
  objectLabel,
  ownedSequencesQuery,
  ownerQuery,
  SCHEMA_PUBLIC,
  SEQUENCE_OPTIONS,
} from "#catalog/definitions";

const relationLabel = objectLabel("pg_class", "class.oid");
const OWN_RELATION = `${isOwn("pg_class", "class.oid")} and relpersistence <> 't'`;
const typeLabel = objectLabel("pg_type", "type.oid");
const ownTypes = isOwn("pg_type", "type.oid");

const owners = `
  select object, 'the owner' as setting, statement, null as remove
  from (${ownerQuery({ isArchive: false }, (catalog) => catalog !== "pg_largeobject_metadata")}) as owned
  union all
  select 'schema public', 'the owner', format('alter schema public owner to %I', pg_get_userbyid(nspowner)), null
  from pg_namespace where oid = ${SCHEMA_PUBLIC}`;

const domains = `
  select ${typeLabel}, 'the default', format('alter domain %s set default %s', format_type(type.oid, null), typdefault),
    format('alter domain %s drop default', format_type(type.oid, null))
  from pg_type as type where ${ownTypes} and typtype = 'd' and typdefault is not null
  union all
  select ${typeLabel}, 'not null', format('alter domain %s set not null', format_type(type.oid, null)),
    format('alter domain %s drop not null', format_type(type.oid, null))
  from pg_type as type where ${ownTypes} and typtype = 'd' and typnotnull
  union all
  select ${typeLabel}, 'constraint ' || quote_ident(conname),
    format('alter domain %s add constraint %I %s', format_type(type.oid, null), conname, pg_get_constraintdef(constrained.oid)),
    format('alter domain %s drop constraint %I', format_type(type.oid, null), conname)
  from pg_constraint as constrained join pg_type as type on type.oid = contypid where ${ownTypes} and contype = 'c'`;

/** Those of identity and serial columns, too. */
const sequences = `
  select ${relationLabel}, 'the limits',
    format(
      'alter sequence %s as %s %s%s', class.oid::regclass, format_type(seqtypid, null), ${SEQUENCE_OPTIONS},
      case when not seqcycle then ' no cycle' end
    ), null
  from pg_class as class join pg_sequence on seqrelid = class.oid where ${OWN_RELATION}
  union all
  select object, 'the column', statement, remove from (${ownedSequencesQuery}) as owned`;

const storage = `
  select ${relationLabel}, 'the tablespace',
    format('alter table %s set tablespace %I', class.oid::regclass, coalesce(spcname, 'pg_default')), null
  from pg_class as class left join pg_tablespace on pg_tablespace.oid = reltablespace
  where relkind in ('r', 'm') and ${OWN_RELATION}
  union all
  select ${relationLabel}, 'the emptiness', format('refresh materialized view %s with no data', class.oid::regclass),
    format('refresh materialized view %s', class.oid::regclass)
  from pg_class as class where relkind = 'm' and not relispopulated and ${OWN_RELATION}`;

const extensions = `
  select 'extension ' || quote_ident(extname), 'the version', format('alter extension %I update to %L', extname, extversion), null from pg_extension`;

/**
 * A query of `SchemaRow`: properties of objects that are not in their definitions, or can be changed where the object cannot
 * be created again. Those that every object has are replaced, not removed.
 */
export const objectSettings = `
  select object, setting || ' of ' || object as name, statement as text, statement, coalesce(remove, '') as remove,
    case when remove is null then statement end as replacement
  from (${[owners, domains, sequences, storage, extensions].join("\n  union all\n")}) as settings`;

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
