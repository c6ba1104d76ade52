import type { CatalogColumn, CatalogTable, QualifiedName } from "#catalog";
import { isToOne, nameRelationships, type StoredRelationship } from "#planner";
import { memoize } from "#runtime";
import type { ComponentReference } from "../document/components.ts";
import { columnSchema, type JsonSchema } from "../document/json-schema.ts";
import { includesAll, type VisibleTable } from "../document/visible-schema.ts";
import { needsValue, nonEmpty, type RowSchemaContext, rowRef, rowSchemaKey, writableColumns } from "./components.ts";

type NestedForm = "nestedInsert" | "nestedUpdate";

/** The bodies of `Prefer: nested=…`. They refer to each other and to the other schemas of a row, so that none is repeated. */
export class NestedSchemas {
  readonly #context: RowSchemaContext;
  readonly #described: ReadonlyMap<CatalogTable, VisibleTable>;
  readonly #relationsOf = memoize((table: CatalogTable) => nameRelationships(table, this.#context.catalog));

  constructor(context: RowSchemaContext) {
    this.#context = context;
    this.#described = new Map(context.viewer.tables.map((visible) => [visible.table, visible]));
  }

  /** Returns the reference; null if the role may not write related rows with one of this table. */
  refOf(visible: VisibleTable, form: NestedForm): ComponentReference | null {
    const isPossible = this.#hasForm(visible, form) && Object.keys(this.#relationSchemas(visible, form)).length > 0;
    return isPossible ? rowRef(visible.table.name, form) : null;
  }

  *schemasOf(visible: VisibleTable): Generator<[string, JsonSchema]> {
    const { name } = visible.table;
    if (this.#hasForm(visible, "nestedInsert")) yield [rowSchemaKey(name, "nestedInsert"), this.#insertSchema(visible)];
    if (this.#hasForm(visible, "nestedUpdate")) yield [rowSchemaKey(name, "nestedUpdate"), this.#updateSchema(visible)];
  }

  /** Returns true if the table has the form. Relationships have two sides, so a table without any is in no nested row. */
  #hasForm({ table, verbs, selectable }: VisibleTable, form: NestedForm): boolean {
    if (isView(table) || !this.#context.catalog.relationshipsOf(table).some(({ kind }) => kind !== "computed"))
      return false;
    if (form === "nestedInsert") return verbs.has("insert");
    return verbs.has("update") && table.primaryKey.length > 0 && includesAll(selectable, table.primaryKey);
  }

  /** Returns the schema for an insert. A foreign key is not required, since the related row has its value. */
  #insertSchema(visible: VisibleTable): JsonSchema {
    const { catalog } = this.#context;
    const { table, insertable, updatable, verbs } = visible;
    const columns = writableColumns(insertable, catalog);
    const foreign = new Set(catalog.referencesFrom(table).flatMap((each) => each.columns.map(({ source }) => source)));
    const required = columns.filter((column) => needsValue(column, catalog)).map(({ name }) => name);
    const relations = this.#relationSchemas(visible, "nestedInsert");
    if (!required.some((name) => foreign.has(name)))
      return { type: "object", allOf: [rowRef(table.name, "insert")], properties: relations };
    const changeable = verbs.has("update") ? writableColumns(updatable, catalog) : [];
    const isPart = changeable.length > 0 && changeable.every((column) => columns.includes(column));
    return {
      type: "object",
      allOf: isPart ? [rowRef(table.name, "update")] : undefined,
      properties: { ...this.#columnSchemas(columns, isPart ? changeable : []), ...relations },
      required: nonEmpty(required.filter((name) => !foreign.has(name))),
    };
  }

  #updateSchema(visible: VisibleTable): JsonSchema {
    const { table, updatable } = visible;
    const keys = table.primaryKey.map((name) => table.columns.get(name)!);
    const changeable = writableColumns(updatable, this.#context.catalog);
    return {
      type: "object",
      allOf: [rowRef(table.name, "update")],
      properties: { ...this.#columnSchemas(keys, changeable), ...this.#relationSchemas(visible, "nestedUpdate") },
    };
  }

  #columnSchemas(columns: readonly CatalogColumn[], except: readonly CatalogColumn[]): Record<string, JsonSchema> {
    const own = columns.filter((column) => !except.includes(column));
    return Object.fromEntries(own.map((column) => [column.name, columnSchema(column, this.#context.typeSchema)]));
  }

  #relationSchemas(visible: VisibleTable, form: NestedForm): Record<string, JsonSchema> {
    const relations = [...this.#relationsOf(visible.table)].flatMap(([name, relationship]) => {
      const target = this.#described.get(this.#context.catalog.findTable(relationship.target)!);
      if (!target || !this.#mayLink(visible, relationship, target, form)) return [];
      // An update inserts the rows that have no key, unless it is nested=update.
      const forms = form === "nestedInsert" ? [form] : (["nestedUpdate", "nestedInsert"] as const);
      const rows = forms.filter((each) => this.#hasForm(target, each)).map((each) => rowRef(target.table.name, each));
      return rows.length > 0 ? [[name, relationSchema(rows, relationship, visible.table)] as const] : [];
    });
    return Object.fromEntries(relations);
  }

  /** Returns true if the role may write the foreign keys, and read the keys that they refer to. */
  #mayLink(visible: VisibleTable, relationship: StoredRelationship, target: VisibleTable, form: NestedForm): boolean {
    if (relationship.kind === "many-to-many") {
      const { sourceColumns, targetColumns } = relationship;
      const written = [...sourceColumns, ...targetColumns].map(({ junction }) => junction);
      return (
        this.#mayWrite(relationship.junction, written) &&
        includesAll(visible.selectable, namesOf(sourceColumns, "source")) &&
        includesAll(target.selectable, namesOf(targetColumns, "target"))
      );
    }
    const { columns, keyAt } = relationship;
    const [referring, referred] = keyAt === "source" ? [visible, target] : [target, visible];
    const [keys, others] = keyAt === "source" ? (["source", "target"] as const) : (["target", "source"] as const);
    const writable = form === "nestedInsert" ? referring.insertable : referring.updatable;
    return includesAll(writable, namesOf(columns, keys)) && includesAll(referred.selectable, namesOf(columns, others));
  }

  #mayWrite(junction: QualifiedName, columns: readonly string[]): boolean {
    const visible = this.#context.viewer.findVisible(junction);
    return visible !== null && includesAll(visible.insertable, columns) && includesAll(visible.selectable, columns);
  }
}

function relationSchema(
  rows: readonly ComponentReference[],
  relationship: StoredRelationship,
  table: CatalogTable,
): JsonSchema {
  const row = rows.length === 1 ? rows[0]! : { anyOf: rows };
  if (!isToOne(relationship)) return { type: "array", items: row };
  const isOptional =
    relationship.kind === "many-to-one" &&
    relationship.columns.some(({ source }) => table.columns.get(source)!.nullable);
  return isOptional ? { anyOf: [...rows, { type: "null" }] } : row;
}

function namesOf<Side extends string>(pairs: readonly Readonly<Record<Side, string>>[], side: Side): string[] {
  return pairs.map((pair) => pair[side]);
}

function isView({ kind }: CatalogTable): boolean {
  return kind === "view" || kind === "materialized view";
}
