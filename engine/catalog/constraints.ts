import type { QualifiedName } from "./qualified-name.ts";
import type { Read } from "./reader.ts";

export type Check = {
  readonly name: string;
  readonly kind: "check" | "exclude";
  readonly columns: readonly string[];
  /** Of a check: its condition. */
  readonly expression: string | null;
  readonly comment: string | null;
};

export type ForeignKey = {
  readonly name: string;
  readonly columns: readonly string[];
  /** May lie in a schema that is not served. */
  readonly target: QualifiedName;
  readonly targetColumns: readonly string[];
  readonly onUpdate: ReferentialAction;
  readonly onDelete: ReferentialAction;
  readonly comment: string | null;
};

export type ReferentialAction = "no action" | "restrict" | "cascade" | "set null" | "set default";

export type ConstraintRow = {
  oid: number;
  table: number;
  name: string;
  contype: "p" | "u" | "f" | "c" | "x";
  index: number;
  columns: number[] | null;
  target: number;
  targetColumns: number[] | null;
  onUpdate: ActionLetter;
  onDelete: ActionLetter;
  expression: string | null;
  comment: string | null;
};
type ActionLetter = "a" | "r" | "c" | "n" | "d" | " ";

// Foreign keys that Postgres made for partitions stand for the one of the partitioned table. One with a period is left out:
// its rows go together by periods that contain each other, and not by equal values.
const constraints = (serverVersion: number) => `
  select k.oid, k.conrelid as table, k.conname as name, k.contype, k.conindid as index,
    k.conkey as columns, k.confrelid as target, k.confkey as "targetColumns",
    k.confupdtype as "onUpdate", k.confdeltype as "onDelete",
    case when k.contype = 'c' then pg_get_expr(k.conbin, k.conrelid) end as expression, d.description as comment
  from pg_constraint k join pg_class c on c.oid = k.conrelid
    left join pg_description d on d.classoid = 'pg_constraint'::regclass and d.objoid = k.oid
  where (c.relnamespace = any ($1) or c.oid = any ($2)) and k.contype in ('p', 'u', 'f', 'c', 'x')
    and (k.contype <> 'f' or k.conparentid = 0 ${serverVersion >= 180000 ? "and not k.conperiod" : ""})
  order by k.conrelid, k.conname, k.oid`;

/** Those of the tables in these schemas, and of the hidden tables that views show. */
export function readConstraints(
  read: Read,
  schemas: readonly number[],
  hidden: readonly number[],
  serverVersion: number,
): Promise<ConstraintRow[]> {
  return read("constraints", constraints(serverVersion), [schemas, hidden]);
}

const ACTIONS: Readonly<Record<ActionLetter, ReferentialAction>> = {
  a: "no action",
  r: "restrict",
  c: "cascade",
  n: "set null",
  d: "set default",
  " ": "no action",
};

/** What the columns are called that have these numbers in the table. */
export type Namer = (table: number, positions: readonly number[]) => string[];

export function toCheck(row: ConstraintRow, namesOf: Namer): Check {
  return {
    name: row.name,
    kind: row.contype === "c" ? "check" : "exclude",
    columns: namesOf(row.table, row.columns ?? []),
    expression: row.expression,
    comment: row.comment,
  };
}

export function toForeignKey(row: ConstraintRow, target: QualifiedName, namesOf: Namer): ForeignKey {
  return {
    name: row.name,
    columns: namesOf(row.table, row.columns ?? []),
    target: { schema: target.schema, name: target.name },
    targetColumns: namesOf(row.target, row.targetColumns ?? []),
    onUpdate: ACTIONS[row.onUpdate],
    onDelete: ACTIONS[row.onDelete],
    comment: row.comment,
  };
}
