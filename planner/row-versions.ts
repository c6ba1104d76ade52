import type { Catalog, CatalogTable } from "#catalog";
import { quotedName } from "#postgres/client";
import type { ParameterValue } from "#postgres/statement";
import type { DeleteIntent, RowCondition } from "./intent/intent.ts";
import { bindValues, listOperations } from "./plan/bind-parameters.ts";
import { planConditions } from "./plan/plan-selection.ts";
import { tableScope } from "./plan/scope.ts";
import { buildSelectTree } from "./plan/select-tree.ts";
import { buildConjunction } from "./query/build-select.ts";
import { compile } from "./query/sql.ts";

/**
 * The rows of a JSON parameter, in their order, under the table's own name: so a condition written for the table is evaluated
 * on earlier versions of its rows. `isPresent`: all rows have a value for the column.
 */
export function rowVersionsSql(table: CatalogTable, isPresent: (column: string) => boolean, parameter = "$1"): string {
  return `from pg_catalog.json_array_elements(${parameter}::pg_catalog.json) with ordinality as "$images" ("$image", "$number")
cross join lateral ${rowVersionSql(table, isPresent)}
order by "$images"."$number"`;
}

/** Computes generated columns that are not in the log, since policies may read them: virtual ones, and before Postgres 18 also stored ones. */
function rowVersionSql({ schema, name: table, columns }: CatalogTable, isPresent: (column: string) => boolean): string {
  const alias = quotedName(table);
  const record = `pg_catalog.json_populate_record(null::${quotedName(schema, table)}, "$images"."$image") as ${alias}`;
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
