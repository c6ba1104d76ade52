import type { Column } from "./columns.ts";
import type { Check, ForeignKey } from "./constraints.ts";
import type { Grants } from "./grants.ts";
import type { Index, UniqueKey } from "./indexes.ts";
import type { Policy } from "./policies.ts";
import type { QualifiedName } from "./qualified-name.ts";
import type { Read } from "./reader.ts";
import type { Routine } from "./routines.ts";

export type TableKind = "table" | "partitioned table" | "view" | "materialized view" | "foreign table";

/** Whatever has rows: see `kind`. */
export type Table = QualifiedName & {
  /** As the change stream names it; it does not survive drop and create. */
  readonly oid: number;
  readonly kind: TableKind;
  /** PostgREST serves the partitioned table and not its parts. */
  readonly isPartition: boolean;
  readonly owner: string;
  readonly comment: string | null;
  readonly extension: string | null;
  /** Views: by themselves or by an `instead of` trigger. */
  readonly insertable: boolean;
  readonly updatable: boolean;
  readonly deletable: boolean;
  readonly rowSecurity: "off" | "enabled" | "forced";
  readonly policies: readonly Policy[];
  /** A view that checks privileges and policies as its caller and not as its owner. */
  readonly securityInvoker: boolean;
  readonly replicaIdentity: "default" | "nothing" | "full" | "index";
  /** In their order. */
  readonly columns: ReadonlyMap<string, Column>;
  /** Of a view: the primary keys of the tables it shows, when it shows them whole. Empty when there is none. */
  readonly primaryKey: readonly string[];
  readonly uniqueKeys: readonly UniqueKey[];
  readonly indexes: readonly Index[];
  readonly checks: readonly Check[];
  readonly foreignKeys: readonly ForeignKey[];
  /** Functions whose only argument is a row of this table and which give one value: `select full_name from people`. */
  readonly computedColumns: ReadonlyMap<string, Routine>;
  /** All functions whose first argument is a row of this table, in any schema. */
  readonly rowRoutines: readonly Routine[];
  readonly grants: Grants;
};

export type TableRow = {
  oid: number;
  rowType: number;
  schema: string;
  name: string;
  relkind: "r" | "p" | "v" | "m" | "f";
  isPartition: boolean;
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

// Only views and foreign tables are asked what can be done to them: that opens them, which costs and may have to wait for a
// lock, and it fails for a foreign data wrapper without a handler.
const TABLES = `
  select c.oid, c.reltype as "rowType", n.nspname as schema, c.relname as name, c.relkind, c.relispartition as "isPartition",
    pg_get_userbyid(c.relowner) as owner, array_to_string(coalesce(c.relacl, acldefault('r', c.relowner)), E'\\n') as acl,
    d.description as comment, e.extname as extension,
    c.relrowsecurity as enabled, c.relforcerowsecurity as forced, c.reloptions as options,
    c.relreplident as "replicaIdentity",
    case when c.relkind in ('r', 'p') then 28
      when c.relkind = 'v' or w.fdwhandler <> 0 then pg_relation_is_updatable(c.oid, true)
      else 0 end as events,
    c.relkind = 'v' and pg_relation_is_updatable(c.oid, false) <> 0 as "showsOneTable"
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

export function readTables(read: Read, schemas: readonly number[]): Promise<TableRow[]> {
  return read("tables", TABLES, [schemas]);
}

const KINDS: Readonly<Record<TableRow["relkind"], TableKind>> = {
  r: "table",
  p: "partitioned table",
  v: "view",
  m: "materialized view",
  f: "foreign table",
};
const IDENTITIES = { d: "default", n: "nothing", f: "full", i: "index" } as const;
/** `pg_relation_is_updatable` answers with one bit per command. */
const EVENTS = { update: 1 << 2, insert: 1 << 3, delete: 1 << 4 };

type OwnFacts = Pick<
  Table,
  | "oid"
  | "schema"
  | "name"
  | "kind"
  | "isPartition"
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

export function toTableFacts(row: TableRow): OwnFacts {
  const { oid, schema, name, isPartition, owner, comment, extension, events } = row;
  return {
    oid,
    schema,
    name,
    kind: KINDS[row.relkind],
    isPartition,
    owner,
    comment,
    extension,
    insertable: (events & EVENTS.insert) !== 0,
    updatable: (events & EVENTS.update) !== 0,
    deletable: (events & EVENTS.delete) !== 0,
    rowSecurity: !row.enabled ? "off" : row.forced ? "forced" : "enabled",
    securityInvoker: row.options?.some((option) => /^security_invoker=(true|on|yes|1)$/i.test(option)) ?? false,
    replicaIdentity: IDENTITIES[row.replicaIdentity],
  };
}
