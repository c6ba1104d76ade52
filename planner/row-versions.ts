import type { Catalog, CatalogTable } from "#catalog";
import { quotedName } from "#postgres/client";
import type { ParameterValue } from "#postgres/statement";
import type { DeleteIntent, RowCondition } from "./intent/intent.ts";
import { bindValues, listOperations } from "./plan/bind-parameters.ts";
import { planConditions } from "./plan/plan-selection.ts";
import { tableScope } from "./plan/scope.ts";
import { buildSelectTree } from "./plan/select-tree.ts";
import { buildConjunction } from "./query/build-select.ts";
import { compile, literal } from "./query/sql.ts";

type RowVersionOptions = {
  /** True if all rows have a value for the column. */
  readonly isPresent: (column: string) => boolean;
  /** The columns of which rows have the null of JSON: these name them in an object under the key "". */
  readonly jsonNulls?: ReadonlySet<string>;
  readonly parameter?: string;
};

/**
 * The rows of a JSON parameter, in their order, under the table's own name: so a condition written for the table is evaluated
 * on earlier versions of its rows.
 */
export function rowVersionsSql(
  table: CatalogTable,
  { isPresent, jsonNulls = new Set(), parameter = "$1" }: RowVersionOptions,
): string {
  const rows = [
    `from pg_catalog.json_array_elements(${parameter}::pg_catalog.json) with ordinality as "$images" ("$image", "$number")`,
    ...(jsonNulls.size > 0 ? [`cross join lateral ${baseRowSql(table, jsonNulls)}`] : []),
    `cross join lateral ${rowVersionSql(table, isPresent, jsonNulls)}`,
    `order by "$images"."$number"`,
  ];
  return rows.join("\n");
}

/** The row of the image; a value that the image does not have is that of the base row. */
function populatedRow(base: string): string {
  return `pg_catalog.json_populate_record(${base}, "$images"."$image")`;
}

/**
 * The base row, which has the nulls of JSON: in an image, they would be read as SQL nulls. It is one column, so that names of a condition
 * refer to the columns of the row itself.
 */
function baseRowSql({ schema, name, columns }: CatalogTable, jsonNulls: ReadonlySet<string>): string {
  const rowType = quotedName(schema, name);
  const cells = [...columns.values()].map((column) => {
    const cell = quotedName("$row", column.name);
    if (!jsonNulls.has(column.name)) return cell;
    const mark = `"$images"."$image" operator(pg_catalog.#>) array['', ${compile(literal(column.name)).text}]`;
    return `case when (${mark}) is null then ${cell} else 'null'::${column.sqlType} end`;
  });
  const row = `row(${cells.join(", ")})::${rowType}`;
  return `(select ${row} from ${populatedRow(`null::${rowType}`)} as "$row") as "$bases" ("$base")`;
}

/** Computes generated columns that are not in the log, since policies may read them: virtual ones, and before Postgres 18 also stored ones. */
function rowVersionSql(
  catalogTable: CatalogTable,
  isPresent: (column: string) => boolean,
  jsonNulls: ReadonlySet<string>,
): string {
  const { name: table, columns } = catalogTable;
  const alias = quotedName(table);
  const base = jsonNulls.size > 0 ? `"$bases"."$base"` : `null::${quotedName(catalogTable.schema, table)}`;
  const record = `${populatedRow(base)} as ${alias}`;
  const cells = [...columns.values()].map(({ name, generated }) => {
    const isComputed = generated !== null && !isPresent(name);
    return {
      isComputed,
      sql: isComputed ? `(${generated.expression}) as ${quotedName(name)}` : quotedName(table, name),
    };
  });
  if (!cells.some(({ isComputed }) => isComputed)) return record;
  return `(select ${cells.map(({ sql }) => sql).join(", ")} from ${record}) as ${alias}`;
}

export type VersionCondition = {
  readonly text: string;
  /** The values of its parameters, which are the first ones of the statement. */
  readonly values: readonly ParameterValue[];
  readonly columns: ReadonlySet<string>;
};

/** A condition on the columns of a table, to be evaluated on `rowVersionsSql`. */
export function buildVersionCondition(
  conditions: readonly RowCondition[],
  table: CatalogTable,
  { catalog, role }: { readonly catalog: Catalog; readonly role: string },
): VersionCondition {
  const { schema, name } = table;
  const selection = {
    select: [],
    conditions: conditions.map((value) => ({ path: [], value })),
    orders: [],
    ranges: [],
  };
  const intent: DeleteIntent = {
    kind: "delete",
    target: { schema, name },
    selection,
    returned: "nothing",
    count: null,
  };
  const operations = new Map(listOperations(intent).map((operation, index) => [operation, index]));
  const rules = { legacyTargetNames: false };
  const scope = tableScope(table, { alias: name, depth: 0, takenAliases: new Set() }, { catalog, role });
  const where = planConditions(buildSelectTree(selection, rules), scope, {
    ...{ catalog, role, schema, ...rules, aggregates: false, maxRows: null },
    parameterFor: (operation) => ({ kind: "operand", index: operations.get(operation)! }),
  });
  const { text, parameters } = compile(buildConjunction(where));
  return { text, values: bindValues(parameters, intent), columns: scope.usedNames };
}
