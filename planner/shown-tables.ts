import type { Catalog, CatalogTable } from "#catalog";
import type { Intent } from "./intent/intent.ts";
import { listOperations } from "./plan/bind-parameters.ts";
import type { Plan } from "./plan/plan.ts";
import type { OutputColumn, SelectPlan, ValueExpression, WherePredicate } from "./plan/selection.ts";

/** A condition that all read rows meet: the column of the table, given by its oid, compared with values of the request. */
export type ColumnComparison = {
  readonly relation: number;
  readonly column: string;
  readonly operator: "eq" | "gt" | "gte" | "lt" | "lte";
  /** The values: for `eq` one of them must match; other operators have one value. */
  readonly values: readonly string[];
};

/** The rows of a table in a response: `path` names the members that lead to its objects; in a list, it applies to each item. */
export type ShownRows = { readonly path: readonly string[]; readonly table: ShownTable };

/** How the objects of a response show the rows of a table. */
export type ShownTable = {
  readonly relation: number;
  /** The names of members with values of columns, by column. */
  readonly members: ReadonlyMap<string, string>;
  readonly key: readonly string[];
  /** How often the statement reads the table for these rows, always by the same conditions; 0 if that is not known. */
  readonly reads: number;
  /** True if deleting a row without an object leaves the other objects unchanged. */
  readonly isIndependent: boolean;
  /** The members that rows without an object change too. */
  readonly remainders: readonly ShownRemainder[];
  /** The first column of the order, and the number of rows of a full page; null if there is no such order, or no limit. */
  readonly page: ShownPage | null;
  readonly comparisons: readonly ColumnComparison[];
  readonly related: readonly ShownRelation[];
};

/** A member of the response that tells whether there are rows without an object: the number of all rows, or true if there are some. */
export type ShownRemainder = { readonly path: ShownRows["path"]; readonly kind: "count" | "flag" };

export type ShownPage = {
  readonly column: string;
  readonly isDescending: boolean;
  readonly rows: number;
  /** True if the objects have the reverse order. */
  readonly isReversed: boolean;
};

/** A relation in each object of its parent. */
export type ShownRelation = {
  readonly path: ShownRows["path"];
  readonly isList: boolean;
  /** These columns of the table, or of the junction table, have the values of the parent's columns. */
  readonly joins: readonly { readonly relation: number; readonly column: string; readonly parentColumn: string }[];
  /** Null if the relation is not a table. */
  readonly table: ShownTable | null;
};

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

/** Null if the order does not tell which rows follow the page. */
export function toShownPage(
  { columns }: CatalogTable,
  {
    column,
    isDescending,
    areNullsLast,
  }: Pick<ShownPage, "column" | "isDescending"> & { readonly areNullsLast: boolean },
  { rows, isReversed }: Pick<ShownPage, "rows" | "isReversed">,
): ShownPage | null {
  // A row with null would be the first of the page.
  const mayBeFirst = !areNullsLast && columns.get(column)?.nullable !== false;
  return rows === 0 || mayBeFirst ? null : { column, isDescending, rows, isReversed };
}
