import {
  expression,
  joinName,
  onlyIf,
  type QualifiedName,
  quoteName,
  quoteOptional,
  quoteTable,
  quoteText,
  tableText,
} from "../../sql-text.ts";

export const REFERENTIAL_ACTIONS = ["no action", "restrict", "cascade", "set null", "set default"] as const;

export type ReferentialAction = (typeof REFERENTIAL_ACTIONS)[number];

export type ColumnReference = {
  readonly table: QualifiedName;
  readonly column: string;
  readonly onDelete: ReferentialAction;
};

/** A new column. SQL omits empty texts. */
export type ColumnForm = {
  readonly name: string;
  /** SQL of the type: `numeric(10, 2)`. */
  readonly type: string;
  /** SQL of the default. */
  readonly default: string;
  readonly identity: "" | "always" | "by default";
  readonly notNull: boolean;
  readonly unique: boolean;
  /** SQL of the check. */
  readonly check: string;
  readonly references: ColumnReference | null;
  readonly comment: string;
};

export const NEW_COLUMN: ColumnForm = {
  name: "",
  type: "text",
  default: "",
  identity: "",
  notNull: false,
  unique: false,
  check: "",
  references: null,
  comment: "",
};

/** Returns the definition for `create table` and `add column`, with named constraints. */
export function columnDefinition(table: string, column: ColumnForm): string {
  const { name, type, identity, notNull, unique, check, references } = column;
  const named = (ending: string) => `constraint ${quoteName(joinName(table, name, ending))}`;
  return [
    quoteName(name),
    expression(type),
    ...(identity ? [`generated ${identity} as identity`] : []),
    ...(!identity && column.default.trim() !== "" ? [`default ${expression(column.default)}`] : []),
    ...(notNull ? ["not null"] : []),
    ...(unique ? [`${named("key")} unique`] : []),
    ...(check.trim() === "" ? [] : [`${named("check")} check (${expression(check)})`]),
    ...(references ? [`${named("fkey")} ${referenceClause(references)}`] : []),
  ].join(" ");
}

function referenceClause({ table, column, onDelete }: ColumnReference): string {
  const target = `references ${quoteTable(table)} (${quoteName(column)})`;
  return onDelete === "no action" ? target : `${target} on delete ${onDelete}`;
}

export function addColumn(table: QualifiedName, column: ColumnForm): string {
  const definition = columnDefinition(table.name, column);
  const comment = column.comment.trim() === "" ? [] : [commentOnColumn(table, column.name, column.comment)];
  return [`alter table ${quoteTable(table)} add column if not exists ${definition};`, ...comment].join("\n");
}

export function commentOnColumn(table: QualifiedName, column: string, comment: string): string {
  return `comment on column ${quoteTable(table)}.${quoteName(column)} is ${quoteOptional(comment)};`;
}

/** A column's current or wanted state. */
export type ColumnState = {
  readonly name: string;
  readonly type: string;
  readonly default: string;
  readonly notNull: boolean;
  readonly comment: string;
};

export type ColumnEdit = {
  readonly from: ColumnState;
  readonly to: ColumnState;
  /** SQL that converts a value to the new type; by default a cast. */
  readonly using: string;
};

/** Changes only properties that differ, the name first. */
export function alterColumn(table: QualifiedName, { from, to, using }: ColumnEdit): string {
  const name = quoteName(to.name);
  const actions: string[] = [];
  const isTypeChanged = expression(from.type) !== expression(to.type);
  const isDefaultChanged = expression(from.default) !== expression(to.default);
  // The old default may have no cast to the new type.
  if (isTypeChanged && isDefaultChanged && from.default !== "") actions.push(`alter column ${name} drop default`);
  if (isTypeChanged) {
    const value = using.trim() === "" ? `${name}::${expression(to.type)}` : expression(using);
    actions.push(`alter column ${name} type ${expression(to.type)} using ${value}`);
  }
  if (isDefaultChanged) {
    const isRemoved = to.default.trim() === "";
    if (!(isRemoved && isTypeChanged)) {
      actions.push(`alter column ${name} ${isRemoved ? "drop default" : `set default ${expression(to.default)}`}`);
    }
  }
  if (from.notNull !== to.notNull) actions.push(`alter column ${name} ${to.notNull ? "set" : "drop"} not null`);
  const statements = [
    ...(from.name === to.name ? [] : [renameColumn(table, from.name, to.name)]),
    ...actions.map((action) => `alter table ${quoteTable(table)} ${action};`),
    ...(from.comment === to.comment ? [] : [commentOnColumn(table, to.name, to.comment)]),
  ];
  return statements.join("\n");
}

export function renameColumn(table: QualifiedName, from: string, to: string): string {
  const exists = (column: string) =>
    `exists (select from pg_attribute where attrelid = to_regclass(${tableText(table)}) and attname = ${quoteText(column)}::name and not attisdropped)`;
  return onlyIf(
    `${exists(from)} and not ${exists(to)}`,
    `alter table ${quoteTable(table)} rename column ${quoteName(from)} to ${quoteName(to)};`,
  );
}

export function dropColumn(table: QualifiedName, column: string, { cascade }: { readonly cascade: boolean }): string {
  return `alter table ${quoteTable(table)} drop column if exists ${quoteName(column)}${cascade ? " cascade" : ""};`;
}
