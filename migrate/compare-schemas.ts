import type { SchemaRow, TableColumn } from "#catalog/definitions";
import type { DumpedSchema } from "./dump-schema.ts";

/** A difference between a database and its migrations. */
export type SchemaDifference = {
  /** `index notes_text of table public.notes`. */
  readonly name: string;
  /** `table public.notes` */
  readonly object: string;
  /** `index notes_text of table public.notes is not created by a migration`. */
  readonly description: string;
  /** SQL for the next migration, which keeps the difference. */
  readonly keepSql: string;
  /** SQL that reverts the database to what the migrations create. */
  readonly undoSql: string;
  /** SQL for cases where `undoSql` fails, because a replacement cannot change types or remove columns. */
  readonly recreateSql?: string;
};

/** An object that exists in every schema, even without statements. */
const DEFAULT_PRIVILEGES = "default privileges";

/** Objects that exist in only one schema are reported as a whole, others statement by statement. */
export function compareSchemas(database: DumpedSchema, migrations: DumpedSchema): SchemaDifference[] {
  const here = groupByObject(database.statements);
  const there = groupByObject(migrations.statements);
  for (const objects of [here, there]) if (!objects.has(DEFAULT_PRIVILEGES)) objects.set(DEFAULT_PRIVILEGES, []);
  const added = [...here].filter(([object]) => !there.has(object));
  const missing = [...there].filter(([object]) => !here.has(object));
  const differences = [
    ...added.map(([object, rows]) => describeAdded({ object, name: object }, joinStatements(rows), `drop ${object};`)),
    ...missing.map(([object, rows]) =>
      describeMissing({ object, name: object }, `drop ${object};`, joinStatements(rows)),
    ),
  ];
  const common = [...here.keys()].filter((object) => there.has(object));
  for (const object of common) {
    // Tables are compared part by part below.
    const rest = (rows: readonly SchemaRow[]) => rows.filter((row) => !isTable(row));
    differences.push(...compareRows(rest(here.get(object)!), rest(there.get(object)!)));
  }
  const isCommon = ({ otherObject }: SchemaRow) =>
    otherObject === undefined || (here.has(otherObject) && there.has(otherObject));
  const partsHere = groupByObject(database.tableParts.filter(isCommon));
  const partsThere = groupByObject(migrations.tableParts.filter(isCommon));
  for (const object of common)
    differences.push(...compareRows(partsHere.get(object) ?? [], partsThere.get(object) ?? []));
  return differences;
}

/** True for the definition of a table with all its parts. */
export function isTable({ object, name }: SchemaRow): boolean {
  return name === object && object.startsWith("table ");
}

/** Compares rows by their names. */
export function compareRows(here: readonly SchemaRow[], there: readonly SchemaRow[]): SchemaDifference[] {
  const [textsHere, textsThere] = [here, there].map((rows) => new Set(rows.map(({ text }) => text)));
  const added = here.filter(({ text }) => !textsThere!.has(text));
  const missing = there.filter(({ text }) => !textsHere!.has(text));
  const differences: SchemaDifference[] = [];
  for (const row of added) {
    const { name, object, text, statement, remove } = row;
    const other = missing.find((candidate) => candidate.name === name);
    if (other === undefined) {
      differences.push(describeAdded(row, `${statement};`, `${remove};`));
      continue;
    }
    missing.splice(missing.indexOf(other), 1);
    differences.push({
      name,
      object,
      description: `${name} differs from the migrations${isLine(row) ? `: ${text} instead of ${other.text}` : ""}`,
      keepSql: changeSql(other, row),
      undoSql: changeSql(row, other),
      // A column would lose its values.
      ...(row.column ? {} : { recreateSql: recreateSql(row, other) }),
    });
  }
  return [...differences, ...missing.map((row) => describeMissing(row, `${row.remove};`, `${row.statement};`))];
}

/** True for a column or constraint. */
function isLine({ text, statement }: SchemaRow): boolean {
  return text !== statement && statement.endsWith(text);
}

type Named = Pick<SchemaRow, "object" | "name">;

function describeAdded({ object, name }: Named, keepSql: string, undoSql: string): SchemaDifference {
  return { name, object, description: `${name} is not created by a migration`, keepSql, undoSql };
}

function describeMissing({ object, name }: Named, keepSql: string, undoSql: string): SchemaDifference {
  return { name, object, description: `${name} is missing`, keepSql, undoSql };
}

function changeSql(from: SchemaRow, to: SchemaRow): string {
  if (to.replacement !== null) return `${to.replacement};`;
  const isAltered = from.column && to.column && !from.column.isGenerated && !to.column.isGenerated;
  return isAltered ? alterColumn(to.object, from.column, to.column) : recreateSql(from, to);
}

function recreateSql(from: SchemaRow, to: SchemaRow): string {
  return `${from.remove};\n${to.statement};`;
}

function alterColumn(table: string, before: TableColumn, after: TableColumn): string {
  const { typeName, collation, compression, fallback, notNull, identity } = after;
  const changesType = typeName !== before.typeName || collation !== before.collation;
  const dropsDefault = before.fallback !== null && (changesType || fallback === null);
  const actions = [
    ...(before.identity !== null && identity === null ? ["drop identity"] : []),
    // The default is dropped first: it may have no cast to the type.
    ...(dropsDefault ? ["drop default"] : []),
    ...(changesType ? [`type ${typeName}${collation ?? ""}${conversion(before, after)}`] : []),
    ...(fallback !== null && (changesType || fallback !== before.fallback) ? [`set default ${fallback}`] : []),
    ...(compression === before.compression ? [] : [`set compression ${compression ?? "default"}`]),
    ...(notNull === before.notNull ? [] : [notNull ? "set not null" : "drop not null"]),
    ...(identity === null || identity === before.identity
      ? []
      : [before.identity === null ? `add ${identity}` : `set ${identity.replace(" as identity", "")}`]),
  ];
  return `alter ${table} ${actions.map((action) => `alter column ${after.name} ${action}`).join(", ")};`;
}

/** An explicit cast cuts a text that is too long; without it the statement fails, and nothing is lost. */
function conversion(before: TableColumn, { name, typeName }: TableColumn): string {
  const isSame = familyOf(before.typeName) === familyOf(typeName);
  return isSame ? "" : ` using ${name}::${typeName}`;
}

/** Returns the type without its limits; the types of texts are one. */
function familyOf(typeName: string): string {
  return typeName.replace(/\([\d, ]+\)/, "").replace(/^(?:character varying|character)\b/, "text");
}

export function groupByObject(rows: readonly SchemaRow[]): Map<string, SchemaRow[]> {
  return Map.groupBy(rows, ({ object }) => object);
}

function joinStatements(rows: readonly SchemaRow[]): string {
  return rows.map(({ statement }) => `${statement};`).join("\n");
}
