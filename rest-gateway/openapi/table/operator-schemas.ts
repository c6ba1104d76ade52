import { baseTypeOf, type CatalogColumn, type DataType } from "#catalog";
import { operatorsOf } from "#planner";
import type { UpdateOperator } from "#planner/intent";
import { type ComponentReference, componentKey, componentRef } from "../document/components.ts";
import { columnSchema, type JsonSchema, orNull } from "../document/json-schema.ts";
import type { VisibleTable } from "../document/visible-schema.ts";
import { type RowSchemaContext, rowRef, rowSchemaKey, writableColumns } from "./components.ts";

const NOT_NULL: JsonSchema = { type: ["array", "boolean", "number", "object", "string"], items: {} };
const KEYS: JsonSchema = { anyOf: [{ type: "string" }, { type: "array", items: { type: "string" } }] };

/** The bodies of `Prefer: operators`. Columns of the same type share a schema, because a document has very many columns. */
export class OperatorSchemas {
  readonly #context: RowSchemaContext;
  readonly #shared = new Map<string, JsonSchema>();

  constructor(context: RowSchemaContext) {
    this.#context = context;
  }

  /** Returns the reference; null if no column takes an operator. */
  refOf(visible: VisibleTable): ComponentReference | null {
    return this.#columnsOf(visible).some((column) => takesOperators(column, visible))
      ? rowRef(visible.table.name, "operators")
      : null;
  }

  *schemasOf(visible: VisibleTable): Generator<[string, JsonSchema]> {
    if (!this.refOf(visible)) return;
    const properties = this.#columnsOf(visible).map((column) => [
      column.name,
      takesOperators(column, visible) ? this.#valueOrOperator(column) : columnSchema(column, this.#context.typeSchema),
    ]);
    yield [
      rowSchemaKey(visible.table.name, "operators"),
      { type: "object", properties: Object.fromEntries(properties) },
    ];
  }

  /** Returns the schemas that the schemas of the tables so far refer to. */
  sharedSchemas(): Iterable<[string, JsonSchema]> {
    return this.#shared;
  }

  #columnsOf({ updatable, verbs }: VisibleTable): readonly CatalogColumn[] {
    return verbs.has("update") ? writableColumns(updatable, this.#context.catalog) : [];
  }

  #valueOrOperator(column: CatalogColumn): JsonSchema {
    const { type, maxLength, nullable } = column;
    if (maxLength !== null || !isOfPostgres(type)) return this.#describe(column);
    const key = `rest.change.${componentKey(type.name)}${nullable ? ".null" : ""}`;
    if (!this.#shared.has(key)) this.#shared.set(key, this.#describe(column));
    return componentRef("schemas", key);
  }

  #describe(column: CatalogColumn): JsonSchema {
    const value = columnSchema(column, this.#context.typeSchema);
    const { operators } = operatorsOf(column.baseType);
    const operands = operators.map((operator) => [operator, this.#operandOf(operator, column.baseType)] as const);
    const change = {
      type: "object",
      properties: Object.fromEntries([...operands, ["$set", value]]),
      minProperties: 1,
      maxProperties: 1,
      additionalProperties: false,
    };
    return { anyOf: [value, change] };
  }

  #operandOf(operator: UpdateOperator, type: DataType): JsonSchema {
    const { typeSchema } = this.#context;
    const { subject } = operatorsOf(type);
    const element = type.kind === "array" ? typeSchema(baseTypeOf(type.element)) : NOT_NULL;
    switch (operator) {
      case "$inc":
        return subject === "time" ? { type: "string", format: "interval" } : typeSchema(type);
      case "$mul":
        return { type: "number" };
      case "$append":
      case "$prepend":
        return subject === "list" ? { anyOf: [element, { type: "array", items: orNull(element) }] } : NOT_NULL;
      case "$remove":
        return element;
      case "$merge":
        return { type: "object" };
      case "$unset":
        return KEYS;
      default:
        return typeSchema(type);
    }
  }
}

/** Returns true if the column takes operators, which read its value. The key by which a row is found does not change. */
function takesOperators({ name }: CatalogColumn, { table, selectable }: VisibleTable): boolean {
  return !table.primaryKey.includes(name) && selectable.some((column) => column.name === name);
}

function isOfPostgres(type: DataType): boolean {
  return type.schema === "pg_catalog" && (type.kind !== "array" || type.element.schema === "pg_catalog");
}
