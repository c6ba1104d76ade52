import {
  expression,
  joinName,
  onlyIf,
  type QualifiedName,
  quoteName,
  quoteNames,
  quoteOptional,
  quoteTable,
  quoteText,
  tableText,
  unlessExists,
} from "../../sql-text.ts";
import { type ColumnForm, columnDefinition, commentOnColumn } from "./column-sql.ts";
import { applyTemplate, type TemplateForm } from "./policy-sql.ts";

/** The publication that realtime reads, unless another one is chosen. */
const REALTIME_PUBLICATION = "supabase_realtime";

export type TableForm = QualifiedName & {
  readonly comment: string;
  readonly columns: readonly ColumnForm[];
  readonly primaryKey: readonly string[];
  /** SQL of the checks, each of several columns. */
  readonly checks: readonly string[];
  readonly access: Omit<TemplateForm, "writable">;
  readonly publish: boolean;
};

export function createTable(table: TableForm): string {
  const { name, columns, primaryKey, comment } = table;
  const lines = [
    ...columns.map((column) => columnDefinition(name, column)),
    ...(primaryKey.length === 0
      ? []
      : [`constraint ${quoteName(joinName(name, "pkey"))} primary key (${quoteNames(primaryKey)})`]),
    ...table.checks.map((check, index) => {
      const constraint = quoteName(joinName(name, `check${index + 1}`));
      return `constraint ${constraint} check (${expression(check)})`;
    }),
  ];
  return [
    `create table if not exists ${quoteTable(table)} (\n  ${lines.join(",\n  ")}\n);`,
    applyTemplate(table, { ...table.access, writable: writableColumns(table) }),
    ...(comment.trim() === "" ? [] : [commentOnTable(table, comment)]),
    ...columns
      .filter((column) => column.comment.trim() !== "")
      .map((column) => commentOnColumn(table, column.name, column.comment)),
    ...(table.publish ? [publishTable(table)] : []),
  ].join("\n");
}

/** Returns the columns that clients write: neither keys nor the owner. */
function writableColumns({ columns, primaryKey, access }: TableForm): string[] {
  const isFixed = ({ name, identity }: ColumnForm) =>
    identity !== "" ||
    primaryKey.includes(name) ||
    (access.template === "owner reads and writes" && name === access.owner);
  return columns.filter((column) => !isFixed(column)).map(({ name }) => name);
}

export function commentOnTable(table: QualifiedName, comment: string): string {
  return `comment on table ${quoteTable(table)} is ${quoteOptional(comment)};`;
}

export function renameTable(table: QualifiedName, to: string): string {
  const renamed = { schema: table.schema, name: to };
  return onlyIf(
    `to_regclass(${tableText(table)}) is not null and to_regclass(${tableText(renamed)}) is null`,
    `alter table ${quoteTable(table)} rename to ${quoteName(to)};`,
  );
}

export function dropTable(table: QualifiedName, { cascade }: { readonly cascade: boolean }): string {
  return `drop table if exists ${quoteTable(table)}${cascade ? " cascade" : ""};`;
}

/** Adds the table to the publication, unless that has all tables. */
export function publishTable(table: QualifiedName): string {
  const publication = quoteText(REALTIME_PUBLICATION);
  const isPublished =
    `exists (select from pg_publication where pubname = ${publication} and puballtables) or ` +
    `exists (select from pg_publication_rel join pg_publication on pg_publication.oid = prpubid where pubname = ${publication} and prrelid = to_regclass(${tableText(table)}))`;
  return [
    onlyIf(
      `not (${isPublished})`,
      `alter publication ${quoteName(REALTIME_PUBLICATION)} add table ${quoteTable(table)};`,
    ),
    `alter table ${quoteTable(table)} replica identity full;`,
  ].join("\n");
}

type EnumForm = QualifiedName & { readonly labels: readonly string[] };

export function createEnum(type: EnumForm): string {
  return unlessExists(`create type ${quoteTable(type)} as enum (${type.labels.map(quoteText).join(", ")});`);
}

/** Adds a label after another one, or at the end. */
export function addEnumLabel(type: QualifiedName, label: string, after: string | null): string {
  const place = after === null ? "" : ` after ${quoteText(after)}`;
  return `alter type ${quoteTable(type)} add value if not exists ${quoteText(label)}${place};`;
}
