import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { Column } from "../../engine/catalog/columns.ts";
import type { DirectRelationship } from "../../engine/catalog/relationships.ts";
import type { Routine } from "../../engine/catalog/routines.ts";
import type { Table } from "../../engine/catalog/tables.ts";
import { block, indented, property } from "./block.ts";
import { computedColumns } from "./computed-columns.ts";
import type { TypeText } from "./type-text.ts";

/** Row, Insert, Update and Relationships of a table or view. */
export function tableType(table: Table, catalog: Catalog, textOf: TypeText): string {
  const columns = [...table.columns.values()];
  const computed = computedColumns(table);
  const written = columns.map((column) => toWritten(column, catalog));
  const writable = written.filter(({ stored }) => stored.generated === null && stored.identity !== "always");
  const valueText = ({ type, nullable }: Column) => (nullable ? `${textOf(type)} | null` : textOf(type));
  const writtenText = (column: Column) => {
    const text = valueText(column);
    return text === "Json" ? "NonNullable<Json>" : text;
  };

  const members = [
    block("Row", [
      ...columns.map((column) => `${property(column.name)}: ${valueText(column)};`),
      ...computed.map((routine) => `${property(routine.name)}: ${textOf(routine.returns.type)} | null;`),
    ]),
  ];
  if (table.insertable) {
    const fields = writable.map(({ column, isOptional }) => {
      return `${property(column.name)}${isOptional ? "?" : ""}: ${writtenText(column)};`;
    });
    members.push(block("Insert", fields));
  }
  if (table.updatable) {
    const fields = writable.map(({ column }) => `${property(column.name)}?: ${writtenText(column)};`);
    members.push(block("Update", fields));
  }
  members.push(relationshipsType(table, catalog), ...computedFields(computed));
  return block(table.name, members);
}

type Written = {
  readonly column: Column;
  /** The table's column behind a view's, whose default and generation hold. */
  readonly stored: Column;
  readonly isOptional: boolean;
};

function toWritten(column: Column, catalog: Catalog): Written {
  const stored = storedColumn(column, catalog);
  const isOptional = [column, stored].some(
    (each) => each.nullable || each.default !== null || each.identity !== null || each.generated !== null,
  );
  return { column, stored, isOptional };
}

function storedColumn(column: Column, catalog: Catalog): Column {
  const shown = column.shows && catalog.findTable(column.shows.table)?.columns.get(column.shows.column);
  return shown ? storedColumn(shown, catalog) : column;
}

function relationshipsType(table: Table, catalog: Catalog): string {
  const entries = catalog.referencesFrom(table).filter(({ target }) => target.schema === table.schema);
  if (entries.length === 0) return "Relationships: [];";
  return `Relationships: [\n${indented(entries.map(relationshipType).join("\n"))}\n];`;
}

function relationshipType({ constraint, kind, columns, target }: DirectRelationship): string {
  const list = (names: readonly string[]) => `[${names.map((name) => JSON.stringify(name)).join(", ")}]`;
  const fields = [
    `foreignKeyName: ${JSON.stringify(constraint)};`,
    `columns: ${list(columns.map(({ source }) => source))};`,
    `isOneToOne: ${kind === "one-to-one"};`,
    `referencedRelation: ${JSON.stringify(target.name)};`,
    `referencedColumns: ${list(columns.map((pair) => pair.target))};`,
  ];
  return `{\n${indented(fields.join("\n"))}\n},`;
}

/** What `select=*` leaves out. */
function computedFields(computed: readonly Routine[]): string[] {
  if (computed.length === 0) return [];
  return [`ComputedFields: ${computed.map(({ name }) => JSON.stringify(name)).join(" | ")};`];
}
