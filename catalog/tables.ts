import type { CatalogQuery } from "./catalog-query.ts";
import type { CatalogIndex, ForeignKey, TableCheck, UniqueKey } from "./constraints.ts";
import { baseTypeOf, type DataType, maxLength, type QualifiedName, type TypeAttribute } from "./data-types.ts";
import type { Distribution } from "./distributed-tables.ts";
import { isLocked } from "./locked-relations.ts";
import type { Grants } from "./privileges.ts";
import type { Routine } from "./routines.ts";

// A default has no variables, so it is printed without its table, which would be locked.
// Since Postgres 18 a not-null constraint can be "not valid": existing rows may still contain nulls.
const COLUMNS = `
  select a.attrelid as table, a.attnum as position, a.attname as name, a.atttypid as type, a.atttypmod as typmod,
    format_type(a.atttypid, a.atttypmod) as "sqlType",
    a.attnotnull and (a.attrelid, a.attnum) not in (
      select k.conrelid, k.conkey[1] from pg_constraint k where k.contype = 'n' and not k.convalidated and k.conrelid <> 0
    ) as "notNull",
    case when a.attgenerated = '' then pg_get_expr(v.adbin, 0)
      when not ${isLocked("c.oid")} then pg_get_expr(v.adbin, v.adrelid) end as expression,
    a.attgenerated <> '' and ${isLocked("c.oid")} as locked, a.attidentity as identity, a.attgenerated as generated,
    d.description as comment, array_to_string(a.attacl, E'\\n') as acl
  from pg_attribute a join pg_class c on c.oid = a.attrelid
    left join pg_attrdef v on v.adrelid = a.attrelid and v.adnum = a.attnum
    left join pg_description d
      on d.classoid = 'pg_class'::regclass and d.objoid = a.attrelid and d.objsubid = a.attnum
  where c.relnamespace = any ($1) and c.relkind in ('r', 'p', 'v', 'm', 'f') and a.attnum > 0 and not a.attisdropped
  order by a.attrelid, a.attnum`;

const POLICY_COMMANDS = { "*": "all", r: "select", a: "insert", w: "update", d: "delete" } as const;

const POLICIES = `
  select p.polrelid as table, p.polname as name, p.polcmd as command, p.polpermissive as permissive,
    array(select case oid when 0 then 'public' else pg_get_userbyid(oid)::text end from unnest(p.polroles) oid order by 1) as roles,
    case when not l.locked then pg_get_expr(p.polqual, p.polrelid) end as using,
    case when not l.locked then pg_get_expr(p.polwithcheck, p.polrelid) end as check, l.locked,
    d.description as comment,
    array(
      select distinct array_to_string(coalesce(n.nspacl, acldefault('n', n.nspowner)), E'\\n')
      from pg_depend x
        left join pg_proc f on x.refclassid = 'pg_proc'::regclass and f.oid = x.refobjid
        left join pg_class t on x.refclassid = 'pg_class'::regclass and t.oid = x.refobjid
        left join pg_operator o on x.refclassid = 'pg_operator'::regclass and o.oid = x.refobjid
        left join pg_type y on x.refclassid = 'pg_type'::regclass and y.oid = x.refobjid
        join pg_namespace n on n.oid = coalesce(f.pronamespace, t.relnamespace, o.oprnamespace, y.typnamespace)
      where x.classid = 'pg_policy'::regclass and x.objid = p.oid
      order by 1
    ) as "schemaAcls"
  from pg_policy p join pg_class c on c.oid = p.polrelid
    left join pg_description d on d.classoid = 'pg_policy'::regclass and d.objoid = p.oid
    cross join lateral (
      select ${isLocked("c.oid")} or exists (
        select from pg_depend x
        where x.classid = 'pg_policy'::regclass and x.objid = p.oid and x.refclassid = 'pg_class'::regclass
          and ${isLocked("x.refobjid")}
      ) as locked
    ) l
  where c.relnamespace = any ($1)
  order by p.polrelid, p.polname`;

type TableKind = "table" | "partitioned table" | "view" | "materialized view" | "foreign table";

/** A table, view or foreign table: see `kind`. */
export type CatalogTable = QualifiedName & {
  /** The oid, which logical replication uses; it changes when the table is dropped and created again. */
  readonly oid: number;
  readonly kind: TableKind;
  /** Like PostgREST, the service exposes the partitioned table and not its partitions. */
  readonly isPartition: boolean;
  /** True for a table with rows of tables that inherit from it, for which its keys do not hold. Keys hold for partitions. */
  readonly hasInheritedRows: boolean;
  readonly owner: string;
  readonly comment: string | null;
  readonly extension: string | null;
  /** A view is insertable if it is automatically updatable or has an `instead of` trigger. */
  readonly insertable: boolean;
  readonly updatable: boolean;
  readonly deletable: boolean;
  readonly rowSecurity: "off" | "enabled" | "forced";
  readonly policies: readonly Policy[];
  /** True for a view with `security_invoker`: privileges and policies are checked for the caller, not for the view's owner. */
  readonly securityInvoker: boolean;
  /** False for a view that may hide rows of the tables that it reads, by its query or by their policies, and for a foreign table. */
  readonly showsAllRows: boolean;
  /** How Citus stores its rows, or those of the table that a view shows; null if Citus does not. */
  readonly distribution: Distribution | null;
  readonly replicaIdentity: "default" | "nothing" | "full" | "index";
  /** The columns in their order. */
  readonly columns: ReadonlyMap<string, CatalogColumn>;
  /**
   * The primary key. For a view, it is the primary keys of the tables that it shows, if it shows all their columns; empty if
   * there is none.
   */
  readonly primaryKey: readonly string[];
  readonly uniqueKeys: readonly UniqueKey[];
  readonly indexes: readonly CatalogIndex[];
  readonly checks: readonly TableCheck[];
  readonly foreignKeys: readonly ForeignKey[];
  /** Functions whose only argument is a row of this table and that return one value: `select full_name from people`. */
  readonly computedColumns: ReadonlyMap<string, Routine>;
  /** All functions whose first argument is a row of this table, in any schema. */
  readonly rowRoutines: readonly Routine[];
  readonly grants: Grants;
};

/** True if several rows may have the same key: those of a view, or of a table and of tables that inherit from it. */
export function mayRepeatKeys({ kind, hasInheritedRows }: CatalogTable): boolean {
  return kind.endsWith("view") || hasInheritedRows;
}

export type TableRow = {
  oid: number;
  rowType: number;
  schema: string;
  name: string;
  relkind: "r" | "p" | "v" | "m" | "f";
  isPartition: boolean;
  hasInheritedRows: boolean;
  owner: string;
  acl: string;
  comment: string | null;
  extension: string | null;
  enabled: boolean;
  forced: boolean;
  options: string[] | null;
  replicaIdentity: "d" | "n" | "f" | "i";
  events: number;
  showsOneTable: boolean;
};

// pg_relation_is_updatable is only called for views and foreign tables: it opens the relation, which is slow and may wait for a
// lock, and it fails for a foreign data wrapper without a handler.
const TABLES = `
  select c.oid, c.reltype as "rowType", n.nspname as schema, c.relname as name, c.relkind, c.relispartition as "isPartition",
    c.relkind = 'r' and c.relhassubclass as "hasInheritedRows",
    pg_get_userbyid(c.relowner) as owner, array_to_string(coalesce(c.relacl, acldefault('r', c.relowner)), E'\\n') as acl,
    d.description as comment, e.extname as extension,
    c.relrowsecurity as enabled, c.relforcerowsecurity as forced, c.reloptions as options,
    c.relreplident as "replicaIdentity",
    case when c.relkind in ('r', 'p') then 28
      when ${isLocked("c.oid")} then null
      when c.relkind = 'v' or w.fdwhandler <> 0 then pg_relation_is_updatable(c.oid, true)
      else 0 end as events,
    case when c.relkind <> 'v' then false
      when not ${isLocked("c.oid")} then pg_relation_is_updatable(c.oid, false) <> 0 end as "showsOneTable",
    c.relkind in ('v', 'f') and ${isLocked("c.oid")} as locked
  from pg_class c join pg_namespace n on n.oid = c.relnamespace
    left join pg_description d on d.classoid = 'pg_class'::regclass and d.objoid = c.oid and d.objsubid = 0
    left join pg_depend x
      on x.classid = 'pg_class'::regclass and x.objid = c.oid and x.objsubid = 0 and x.deptype = 'e'
    left join pg_extension e on e.oid = x.refobjid
    left join pg_foreign_table f on f.ftrelid = c.oid
    left join pg_foreign_server s on s.oid = f.ftserver
    left join pg_foreign_data_wrapper w on w.oid = s.srvfdw
  where c.relnamespace = any ($1) and c.relkind in ('r', 'p', 'v', 'm', 'f')
  order by n.nspname, c.relname`;

export function readTables(read: CatalogQuery, schemas: readonly number[]): Promise<TableRow[]> {
  return read("tables", TABLES, [schemas]);
}

const TABLE_KINDS: Readonly<Record<TableRow["relkind"], TableKind>> = {
  r: "table",
  p: "partitioned table",
  v: "view",
  m: "materialized view",
  f: "foreign table",
};
const REPLICA_IDENTITIES = { d: "default", n: "nothing", f: "full", i: "index" } as const;
/** `pg_relation_is_updatable` returns one bit per command. */
const EVENT_BITS = { update: 1 << 2, insert: 1 << 3, delete: 1 << 4 };
/** The bits of all events, which every table has. */
export const ALL_EVENTS = EVENT_BITS.update | EVENT_BITS.insert | EVENT_BITS.delete;

/** Returns the events in the format of `pg_relation_is_updatable`. */
export function updatableEvents(table: CatalogTable | undefined): number {
  if (!table) return 0;
  const { insertable, updatable, deletable } = table;
  const { insert, update, delete: remove } = EVENT_BITS;
  return (insertable ? insert : 0) | (updatable ? update : 0) | (deletable ? remove : 0);
}

type TableProperties = Pick<
  CatalogTable,
  | "oid"
  | "schema"
  | "name"
  | "kind"
  | "isPartition"
  | "hasInheritedRows"
  | "owner"
  | "comment"
  | "extension"
  | "insertable"
  | "updatable"
  | "deletable"
  | "rowSecurity"
  | "securityInvoker"
  | "replicaIdentity"
>;

export function toTableProperties(row: TableRow): TableProperties {
  const { oid, schema, name, isPartition, hasInheritedRows, owner, comment, extension, events } = row;
  return {
    oid,
    schema,
    name,
    kind: TABLE_KINDS[row.relkind],
    isPartition,
    hasInheritedRows,
    owner,
    comment,
    extension,
    insertable: (events & EVENT_BITS.insert) !== 0,
    updatable: (events & EVENT_BITS.update) !== 0,
    deletable: (events & EVENT_BITS.delete) !== 0,
    rowSecurity: !row.enabled ? "off" : row.forced ? "forced" : "enabled",
    securityInvoker: row.options?.some((option) => /^security_invoker=(true|on|yes|1)$/i.test(option)) ?? false,
    replicaIdentity: REPLICA_IDENTITIES[row.replicaIdentity],
  };
}

export type CatalogColumn = TypeAttribute & {
  readonly position: number;
  /** The type without domains. */
  readonly baseType: DataType;
  /** For a view's column, true unless the view is automatically updatable and the table's column is not null. */
  readonly nullable: boolean;
  /** The default of the column or of its domain; null for identity and generated columns. */
  readonly default: string | null;
  readonly identity: "always" | "by default" | null;
  readonly generated: { readonly kind: "stored" | "virtual"; readonly expression: string } | null;
  readonly maxLength: number | null;
  readonly grants: Grants;
  /** The table's column that a view's column shows unchanged. */
  readonly origin: ColumnOrigin | null;
};

type ColumnOrigin = { readonly table: QualifiedName; readonly column: string };

export type ColumnRow = {
  table: number;
  position: number;
  name: string;
  type: number;
  typmod: number;
  sqlType: string;
  notNull: boolean;
  expression: string | null;
  identity: "" | "a" | "d";
  generated: "" | "s" | "v";
  comment: string | null;
  acl: string | null;
};

export function readColumns(read: CatalogQuery, schemas: readonly number[]): Promise<ColumnRow[]> {
  return read("columns", COLUMNS, [schemas]);
}

type ColumnDetails = {
  readonly type: DataType;
  readonly nullable: boolean;
  readonly origin: ColumnOrigin | null;
  readonly grants: Grants;
};

export function toColumn(row: ColumnRow, { type, nullable, origin, grants }: ColumnDetails): CatalogColumn {
  const { position, name, sqlType, expression, comment } = row;
  const isComputed = row.generated !== "" || row.identity !== "";
  return {
    position,
    name,
    type,
    baseType: baseTypeOf(type),
    sqlType,
    nullable,
    default: isComputed ? null : (expression ?? domainDefault(type)),
    identity: row.identity === "" ? null : row.identity === "a" ? "always" : "by default",
    generated:
      row.generated === "" ? null : { kind: row.generated === "s" ? "stored" : "virtual", expression: expression! },
    maxLength: maxLength(type, row.typmod),
    comment,
    grants,
    origin,
  };
}

export function forbidsNull(type: DataType): boolean {
  return type.kind === "domain" && (type.notNull || forbidsNull(type.over));
}

function domainDefault(type: DataType): string | null {
  return type.kind === "domain" ? (type.default ?? domainDefault(type.over)) : null;
}

export type Policy = {
  readonly name: string;
  readonly command: "all" | "select" | "insert" | "update" | "delete";
  /** A row passes if at least one permissive policy and all restrictive policies allow it. */
  readonly permissive: boolean;
  /** The roles; `public` is PUBLIC. */
  readonly roles: readonly string[];
  readonly using: string | null;
  readonly check: string | null;
  readonly comment: string | null;
  /**
   * The grants on the schemas that its expressions refer to. Postgres needs no `usage` to evaluate a policy, but a query
   * with its text does.
   */
  readonly schemaGrants: readonly Grants[];
};

type PolicyRow = Omit<Policy, "command" | "schemaGrants"> & {
  table: number;
  command: keyof typeof POLICY_COMMANDS;
  schemaAcls: string[];
};

type GrantsParser = (acl: string | null) => Grants;

export function readPolicies(read: CatalogQuery, schemas: readonly number[]): Promise<PolicyRow[]> {
  return read("policies", POLICIES, [schemas]);
}

export function toPolicy({ table: _, command, schemaAcls, ...policy }: PolicyRow, parseGrants: GrantsParser): Policy {
  return { ...policy, command: POLICY_COMMANDS[command], schemaGrants: schemaAcls.map(parseGrants) };
}
