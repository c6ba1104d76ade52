import { expression, NO_TRANSACTION, type QualifiedName, quoteName, quoteNames, quoteTable } from "../../sql-text.ts";
import type { ReferentialAction } from "./column-sql.ts";

type ForeignKeyForm = {
  readonly name: string;
  readonly columns: readonly string[];
  readonly target: QualifiedName;
  readonly targetColumns: readonly string[];
  readonly onDelete: ReferentialAction;
  readonly onUpdate: ReferentialAction;
  /** True if existing rows are not checked, so that a large table is not locked for long. */
  readonly notValid: boolean;
};

export function addForeignKey(table: QualifiedName, key: ForeignKeyForm): string {
  const { name, columns, target, targetColumns, onDelete, onUpdate, notValid } = key;
  const definition = [
    `foreign key (${quoteNames(columns)}) references ${quoteTable(target)} (${quoteNames(targetColumns)})`,
    ...(onDelete === "no action" ? [] : [`on delete ${onDelete}`]),
    ...(onUpdate === "no action" ? [] : [`on update ${onUpdate}`]),
    ...(notValid ? ["not valid"] : []),
  ].join(" ");
  return addConstraint(table, name, definition);
}

type CheckForm = { readonly name: string; readonly condition: string; readonly notValid: boolean };

export function addCheck(table: QualifiedName, { name, condition, notValid }: CheckForm): string {
  return addConstraint(table, name, `check (${expression(condition)})${notValid ? " not valid" : ""}`);
}

type UniqueForm = {
  readonly name: string;
  readonly columns: readonly string[];
  /** True if nulls are equal: at most one row has none. */
  readonly nullsNotDistinct: boolean;
};

export function addUnique(table: QualifiedName, { name, columns, nullsNotDistinct }: UniqueForm): string {
  const nulls = nullsNotDistinct ? " nulls not distinct" : "";
  return addConstraint(table, name, `unique${nulls} (${quoteNames(columns)})`);
}

function addConstraint(table: QualifiedName, name: string, definition: string): string {
  return [
    dropConstraint(table, name, { cascade: false }),
    `alter table ${quoteTable(table)} add constraint ${quoteName(name)} ${definition};`,
  ].join("\n");
}

/** Validates a constraint that was added as not valid. */
export function validateConstraint(table: QualifiedName, name: string): string {
  return `alter table ${quoteTable(table)} validate constraint ${quoteName(name)};`;
}

export function dropConstraint(table: QualifiedName, name: string, { cascade }: { readonly cascade: boolean }): string {
  return `alter table ${quoteTable(table)} drop constraint if exists ${quoteName(name)}${cascade ? " cascade" : ""};`;
}

export const INDEX_METHODS = ["btree", "hash", "gin", "gist", "brin", "spgist"] as const;

export type IndexForm = {
  readonly name: string;
  readonly method: (typeof INDEX_METHODS)[number];
  readonly columns: readonly string[];
  /** SQL after the columns: `lower(email)`. */
  readonly expression: string;
  readonly unique: boolean;
  /** SQL of a partial index. */
  readonly where: string;
  /** True if the index is built without blocking writes. */
  readonly concurrently: boolean;
};

export function createIndex(table: QualifiedName, index: IndexForm): string {
  const { name, method, columns, unique, where, concurrently } = index;
  const keys = [
    ...columns.map(quoteName),
    ...(index.expression.trim() === "" ? [] : [`(${expression(index.expression)})`]),
  ];
  const statement = [
    `create${unique ? " unique" : ""} index${concurrently ? " concurrently" : ""} if not exists ${quoteName(name)}`,
    `on ${quoteTable(table)} using ${method} (${keys.join(", ")})`,
    ...(where.trim() === "" ? [] : [`where ${expression(where)}`]),
  ].join(" ");
  return `${concurrently ? NO_TRANSACTION : ""}${statement};`;
}

export function dropIndex(index: QualifiedName, { concurrently }: { readonly concurrently: boolean }): string {
  const statement = `drop index${concurrently ? " concurrently" : ""} if exists ${quoteTable(index)};`;
  return `${concurrently ? NO_TRANSACTION : ""}${statement}`;
}
