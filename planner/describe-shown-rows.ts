import type { Catalog, CatalogTable } from "#catalog";
import type { Intent } from "./intent/intent.ts";
import { listOperations } from "./plan/bind-parameters.ts";
import type { Plan } from "./plan/plan.ts";
import type { OutputColumn, SelectPlan, ValueExpression, WherePredicate } from "./plan/selection.ts";
import {
  type ColumnComparison,
  type ShownPage,
  type ShownRelation,
  type ShownRows,
  type ShownTable,
  toShownPage,
} from "./shown-tables.ts";

/** Empty for a plan that does not read a table. */
export function describeShownRows(plan: Plan, intent: Intent, catalog: Catalog): readonly ShownRows[] {
  if (plan.kind !== "read") return [];
  const operations = listOperations(intent);
  const describer = new Describer(catalog, (index) => {
    const operation = operations[index];
    if (operation?.kind === "in") return operation.values;
    return operation?.kind === "compare" ? [operation.value] : null;
  });
  const table = describer.table(plan.keyset?.all ?? plan.rows);
  return table ? [{ path: [], table }] : [];
}

/** True if the body is the rows of a read, or one of them, as JSON. */
export function isBodyOfRows({ kind, keyset, body, format }: Plan): boolean {
  return kind === "read" && keyset === null && body.kind === "json" && format.kind !== "plan";
}

class Describer {
  readonly #catalog: Catalog;
  readonly #valuesOf: (operand: number) => readonly string[] | null;

  constructor(catalog: Catalog, valuesOf: (operand: number) => readonly string[] | null) {
    this.#catalog = catalog;
    this.#valuesOf = valuesOf;
  }

  table(rows: SelectPlan): ShownTable | null {
    const { source, outputs, grouped, distinct, having, offset } = rows;
    const table = source.kind === "table" ? this.#catalog.findTable(source.name) : undefined;
    if (table?.kind !== "table") return null;
    const names = outputs.flatMap((output) => (output.kind === "all" ? [...table.columns.keys()] : output.name));
    // If members have the same name, readers of JSON see only the last.
    const isUnique = (name: string) => names.indexOf(name) === names.lastIndexOf(name);
    const shown = grouped ? [] : outputs;
    return {
      relation: table.oid,
      members: new Map(shown.flatMap((each) => membersOf(each, rows, table)).filter(([, name]) => isUnique(name))),
      key: table.primaryKey,
      reads: 1,
      isIndependent: !grouped && distinct.length === 0 && having.length === 0 && offset === 0,
      remainders: [],
      page: pageOf(rows, table),
      comparisons: rows.where.flatMap((condition) => this.#comparisons(condition, rows.alias, table.oid)),
      related: shown.flatMap((each) => this.#related(each, rows)).filter(({ path: [name] }) => isUnique(name!)),
    };
  }

  #related(output: OutputColumn, parent: SelectPlan): ShownRelation[] {
    if (output.kind === "all" || output.value.kind !== "embedded") return [];
    const { form, from } = output.value;
    const joins = from.where.flatMap((condition) => {
      if (condition.kind !== "same") return [];
      const relation = this.#relationOf(condition.left, from);
      const parentColumn = columnOf(condition.right, parent.alias);
      const column = condition.left.kind === "column" ? condition.left.name : null;
      return relation === null || parentColumn === null || column === null ? [] : [{ relation, column, parentColumn }];
    });
    return [{ path: [output.name], isList: form === "array", joins, table: this.table(from) }];
  }

  /** The oid of the table that is read, or of the junction table. */
  #relationOf(value: ValueExpression, { source, alias }: SelectPlan): number | null {
    if (value.kind !== "column" || source.kind !== "table") return null;
    const { name, through } = source;
    const read = value.of === alias ? name : through?.alias === value.of ? through.table : null;
    const table = read && this.#catalog.findTable(read);
    return table?.kind === "table" ? table.oid : null;
  }

  #comparisons(condition: WherePredicate, alias: string, relation: number): ColumnComparison[] {
    if ("negated" in condition && condition.negated) return [];
    if (condition.kind === "and") return condition.parts.flatMap((part) => this.#comparisons(part, alias, relation));
    if (condition.kind !== "compare" && condition.kind !== "in") return [];
    const { left, operand } = condition;
    const column = columnOf(left, alias);
    const operator = condition.kind === "in" ? "eq" : condition.quantifier === null ? condition.operator : null;
    // A reader changes the value of the text.
    if (column === null || !isOrdering(operator) || operand.reader !== null || operand.parameter.kind !== "operand")
      return [];
    const values = this.#valuesOf(operand.parameter.index);
    return values === null ? [] : [{ relation, column, operator, values }];
  }
}

function isOrdering(operator: string | null): operator is ColumnComparison["operator"] {
  return operator !== null && ["eq", "gt", "gte", "lt", "lte"].includes(operator);
}

function columnOf(value: ValueExpression, alias: string): string | null {
  return value.kind === "column" && value.of === alias ? value.name : null;
}

function membersOf(output: OutputColumn, { alias }: SelectPlan, table: CatalogTable): [column: string, name: string][] {
  if (output.kind === "all") return [...table.columns.keys()].map((name) => [name, name]);
  const column = columnOf(output.value, alias);
  return column === null ? [] : [[column, output.name]];
}

function pageOf({ alias, order, limit, grouped, distinct }: SelectPlan, table: CatalogTable): ShownPage | null {
  const [first] = order;
  if (!first || limit === null || grouped || distinct.length > 0) return null;
  const column = columnOf(first.value, alias);
  if (column === null) return null;
  const isDescending = first.direction === "desc";
  const areNullsLast = first.nulls === null ? !isDescending : first.nulls === "last";
  return toShownPage(table, { column, isDescending, areNullsLast }, { rows: limit, isReversed: false });
}
