import { type Catalog, type CatalogTable, mayNameColumn, operatorSchemaOf } from "#catalog";
import { quotedName } from "#postgres/client";
import type { EqualityFilter } from "../../matching/affected-rows.ts";
import { invalidCondition } from "./condition-tokens.ts";
import type { Condition, Operand, Operator } from "./parse-condition.ts";

/** The alias of the table in statements of shapes. */
export const ROW = "t";

export type ShapeTable = {
  readonly table: CatalogTable;
  readonly catalog: Catalog;
  readonly role: string;
};

/** `like` is a keyword. */
const MATCHES: ReadonlyMap<Operator, string> = new Map([
  ["like", "~~"],
  ["ilike", "~~*"],
]);

/** Writes a condition as SQL: columns by their names in the catalogue, values as parameters. */
export class ConditionWriter {
  readonly values: (string | null)[];
  /** The columns that the conditions name. */
  readonly columns = new Set<string>();
  readonly #of: ShapeTable;
  readonly #parameter: string;

  constructor(of: ShapeTable, parameter: string, values: (string | null)[] = []) {
    this.#of = of;
    this.#parameter = parameter;
    this.values = values;
  }

  write(condition: Condition): string {
    switch (condition.kind) {
      case "and":
      case "or":
        return `(${condition.parts.map((part) => this.write(part)).join(` ${condition.kind} `)})`;
      case "not":
        return `(not ${this.write(condition.part)})`;
      case "bare":
        return this.#operand(condition.operand);
      case "is":
        return `(${this.#operand(condition.left)} is ${condition.test})`;
      case "in":
        return `(${this.#operand(condition.left)} ${this.#operator("=", condition)} any(${this.#value(toArrayText(condition.values), null)}))`;
      case "quantified": {
        const { operator, all, left, right } = condition;
        return `(${this.#operand(left)} ${this.#operator(operator, condition)} ${all ? "all" : "any"}(${this.#operand(right)}))`;
      }
      case "compare":
        return `(${this.#operand(condition.left)} ${this.#operator(condition.operator, condition)} ${this.#operand(condition.right)})`;
    }
  }

  #operand(operand: Operand): string {
    return operand.kind === "column" ? this.#column(operand) : this.#value(operand.text, operand.type);
  }

  /** The operator of the column's type, even if another operator has the same name. */
  #operator(operator: Operator, { left, right }: { readonly left: Operand; readonly right?: Operand }): string {
    const { table } = this.#of;
    const column = left.kind === "column" ? left : right;
    const type = column?.kind === "column" ? table.columns.get(column.name)?.type : undefined;
    const schema = operatorSchemaOf(type, this.#of);
    const isEquality = operator === "=" || operator === "<>";
    const symbol = MATCHES.get(operator) ?? operator;
    if (schema === null || operator.startsWith("is ") || (schema !== "pg_catalog" && !isEquality)) return operator;
    return `operator(${quotedName(schema)}.${symbol})`;
  }

  #value(text: string | null, type: string | null): string {
    const number = this.values.push(text);
    return type === null ? `$${number}` : `$${number}::pg_catalog.${type}`;
  }

  #column({ name, at }: ColumnName): string {
    this.columns.add(name);
    return columnSql(this.#of, { name, at }, this.#parameter);
  }
}

type ColumnName = { readonly name: string; readonly at: number };

/** Throws 400 for a column that does not exist, or that the role may not know of. */
export function columnSql({ table, catalog, role }: ShapeTable, { name, at }: ColumnName, parameter: string): string {
  if (!table.columns.has(name) || !mayNameColumn(catalog, role, table, name))
    throw invalidCondition(parameter, at, `there is no column ${JSON.stringify(name)}`);
  return quotedName(ROW, name);
}

function toArrayText(values: readonly (string | null)[]): string {
  const elements = values.map((value) =>
    value === null ? "NULL" : `"${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"')}"`,
  );
  return `{${elements.join(",")}}`;
}

/** The columns that have one of some values in each row that meets the condition. */
export function equalityFiltersOf(condition: Condition, relation: number): EqualityFilter[] {
  if (condition.kind === "and") return condition.parts.flatMap((part) => equalityFiltersOf(part, relation));
  if (condition.kind === "in" && condition.left.kind === "column")
    return [{ relation, column: condition.left.name, values: condition.values.filter((value) => value !== null) }];
  if (condition.kind !== "compare" || condition.operator !== "=") return [];
  const { left, right } = condition;
  const [column, value] = left.kind === "column" ? [left, right] : [right, left];
  if (column.kind !== "column" || value.kind !== "value" || value.text === null || value.type !== null) return [];
  return [{ relation, column: column.name, values: [value.text] }];
}
