import { objectLabel } from "#catalog/definitions";

/** An object by its oid, which stays when the object is renamed. */
export type NamedObject = {
  readonly key: string;
  /** The name of the object in the dump; null for a part of an object. */
  readonly object: string | null;
  /** The quoted name. */
  readonly name: string;
  readonly schema: string | null;
  /** The statement up to the new name. */
  readonly rename: string;
  readonly move: string | null;
  /** True if the object has rows or values that are lost with it. */
  readonly hasValues: boolean;
};

const key = (catalogue: string, oid: string) => `'${catalogue} ' || ${oid}`;
/** True for the indexes of constraints, which have the names of their constraints. */
const ofConstraint = "exists (select from pg_constraint where conindid = class.oid and contype in ('p', 'u', 'x'))";

const PARTS = [
  `select ${key("pg_namespace", "namespace.oid")} as key, ${objectLabel("pg_namespace", "namespace.oid")} as object,
    quote_ident(nspname) as name, null as schema, format('alter schema %I rename to ', nspname) as rename, null as move, false as "hasValues"
  from pg_namespace as namespace where nspname !~ '^pg_|^information_schema$'`,
  `select ${key("pg_class", "class.oid")}, case when relkind not in ('i', 'I') then ${objectLabel("pg_class", "class.oid")} end,
    quote_ident(relname), quote_ident(nspname),
    format('alter %s %s rename to ', case when relkind in ('i', 'I') then 'index' else 'table' end, class.oid::regclass),
    case when relkind not in ('i', 'I') then format('alter table %s set schema ', class.oid::regclass) end, relkind in ('r', 'p', 'S')
  from pg_class as class join pg_namespace as namespace on namespace.oid = relnamespace
  where class.oid >= 16384 and relkind in ('r', 'p', 'f', 'v', 'm', 'S', 'i', 'I') and nspname !~ '^pg_' and not ${ofConstraint}`,
  `select ${key("pg_attribute", "class.oid || ' ' || attnum")},
    case when relkind in ('r', 'p') then format('column %I of %s', attname, ${objectLabel("pg_class", "class.oid")}) end, quote_ident(attname), null,
    format(case relkind when 'c' then 'alter type %s rename attribute %I to ' else 'alter table %s rename column %I to ' end, class.oid::regclass, attname),
    null, relkind in ('r', 'p') and attgenerated = ''
  from pg_attribute join pg_class as class on class.oid = attrelid join pg_namespace as namespace on namespace.oid = relnamespace
  where attrelid >= 16384 and attnum > 0 and not attisdropped and relkind in ('r', 'p', 'f', 'v', 'm', 'c') and nspname !~ '^pg_'`,
  `select ${key("pg_type", "type.oid")}, ${objectLabel("pg_type", "type.oid")}, quote_ident(typname), quote_ident(nspname),
    format('alter type %s rename to ', format_type(type.oid, null)), format('alter type %s set schema ', format_type(type.oid, null)), false
  from pg_type as type join pg_namespace as namespace on namespace.oid = typnamespace left join pg_class as class on class.oid = typrelid
  where type.oid >= 16384 and (typtype in ('e', 'd', 'r') or relkind = 'c')`,
  `select ${key("pg_enum", "pg_enum.oid")}, null, quote_literal(enumlabel), null,
    format('alter type %s rename value %L to ', format_type(enumtypid, null), enumlabel), null, false
  from pg_enum where enumtypid >= 16384`,
  `select ${key("pg_proc", "proc.oid")}, ${objectLabel("pg_proc", "proc.oid")}, quote_ident(proname), quote_ident(nspname),
    format('alter routine %s rename to ', proc.oid::regprocedure), format('alter routine %s set schema ', proc.oid::regprocedure), false
  from pg_proc as proc join pg_namespace as namespace on namespace.oid = pronamespace where proc.oid >= 16384`,
  `select ${key("pg_constraint", "known.oid")}, null, quote_ident(conname), null,
    case contypid
      when 0 then format('alter table %s rename constraint %I to ', conrelid::regclass, conname)
      else format('alter domain %s rename constraint %I to ', format_type(contypid, null), conname)
    end, null, false
  from pg_constraint as known where known.oid >= 16384 and contype <> 't'`,
  `select ${key("pg_trigger", "known.oid")}, null, quote_ident(tgname), null,
    format('alter trigger %I on %s rename to ', tgname, tgrelid::regclass), null, false
  from pg_trigger as known where not tgisinternal`,
  `select ${key("pg_policy", "known.oid")}, null, quote_ident(polname), null,
    format('alter policy %I on %s rename to ', polname, polrelid::regclass), null, false
  from pg_policy as known`,
  `select ${key("pg_extension", "known.oid")}, 'extension ' || quote_ident(extname), quote_ident(extname), quote_ident(nspname),
    '', format('alter extension %I set schema ', extname), false
  from pg_extension as known join pg_namespace as namespace on namespace.oid = extnamespace`,
];

/** Rows with the columns of `NamedObject`. Runs with an empty search path. */
export const OBJECT_NAMES = PARTS.join("\n  union all\n");
