import type { Grants } from "./grants.ts";
import type { QualifiedName } from "./qualified-name.ts";
import type { Read } from "./reader.ts";
import { type Attribute, baseTypeOf, type DataType, maxLength } from "./types.ts";

export type Column = Attribute & {
  readonly position: number;
  /** The type behind its domains; an enum's values are found here. */
  readonly baseType: DataType;
  /** Of a view's column: known only when the view shows the rows of one table as they are. */
  readonly nullable: boolean;
  /** Its own, or else its domain's; an identity column and a generated one have none. */
  readonly default: string | null;
  readonly identity: "always" | "by default" | null;
  readonly generated: { readonly kind: "stored" | "virtual"; readonly expression: string } | null;
  readonly maxLength: number | null;
  readonly grants: Grants;
  /** Of a view's column: the table's column that it shows unchanged. */
  readonly shows: ShownColumn | null;
};

export type ShownColumn = { readonly table: QualifiedName; readonly column: string };

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

// Since Postgres 18 a column can be "not null not valid": rows from before may still hold a null.
const COLUMNS = `
  select a.attrelid as table, a.attnum as position, a.attname as name, a.atttypid as type, a.atttypmod as typmod,
    format_type(a.atttypid, a.atttypmod) as "sqlType",
    a.attnotnull and (a.attrelid, a.attnum) not in (
      select k.conrelid, k.conkey[1] from pg_constraint k where k.contype = 'n' and not k.convalidated and k.conrelid <> 0
    ) as "notNull",
    pg_get_expr(v.adbin, v.adrelid) as expression, a.attidentity as identity, a.attgenerated as generated,
    d.description as comment, array_to_string(a.attacl, E'\\n') as acl
  from pg_attribute a join pg_class c on c.oid = a.attrelid
    left join pg_attrdef v on v.adrelid = a.attrelid and v.adnum = a.attnum
    left join pg_description d
      on d.classoid = 'pg_class'::regclass and d.objoid = a.attrelid and d.objsubid = a.attnum
  where c.relnamespace = any ($1) and c.relkind in ('r', 'p', 'v', 'm', 'f') and a.attnum > 0 and not a.attisdropped
  order by a.attrelid, a.attnum`;

export function readColumns(read: Read, schemas: readonly number[]): Promise<ColumnRow[]> {
  return read("columns", COLUMNS, [schemas]);
}

type Surroundings = {
  readonly type: DataType;
  readonly nullable: boolean;
  readonly shows: ShownColumn | null;
  readonly grants: Grants;
};

export function toColumn(row: ColumnRow, { type, nullable, shows, grants }: Surroundings): Column {
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
    shows,
  };
}

export function forbidsNull(type: DataType): boolean {
  return type.kind === "domain" && (type.notNull || forbidsNull(type.over));
}

function domainDefault(type: DataType): string | null {
  return type.kind === "domain" ? (type.default ?? domainDefault(type.over)) : null;
}
