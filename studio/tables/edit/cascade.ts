import { quoteField } from "../../api/field-names.ts";
import { formatQuery, type TableRow, tablePath } from "../../api/rest-query.ts";
import type { EditedForeignKey, EditedTable } from "./edited-table.ts";
import type { SendRequest } from "./row-changes.ts";
import { keyFilters } from "./row-requests.ts";

/** The effect of a delete on the rows of one table that refer to the deleted ones, as far as the caller sees them. */
export type CascadeStep = {
  readonly table: Pick<EditedTable, "schema" | "name">;
  readonly foreignKey: EditedForeignKey;
  readonly action: EditedForeignKey["on_delete"];
  /** The number of rows; null if the caller may not read them. */
  readonly count: number | null;
  /** True if references were followed from a part of the rows only. */
  readonly isPartial: boolean;
  readonly steps: readonly CascadeStep[];
};

type CascadeContext = {
  readonly tables: readonly EditedTable[];
  readonly send: SendRequest;
};

/** The maximum number of rows per table from which references are followed. */
const MAX_FOLLOWED = 500;
const MAX_DEPTH = 5;

/** Finds the steps of a delete, without those that affect no row. */
export function findCascade(
  context: CascadeContext,
  table: EditedTable,
  rows: readonly TableRow[],
  depth = MAX_DEPTH,
): Promise<readonly CascadeStep[]> {
  const references = context.tables.flatMap((child) =>
    child.foreign_keys
      .filter(({ target }) => target.schema === table.schema && target.name === table.name)
      .map((foreignKey) => ({ child, foreignKey })),
  );
  const steps = references.map(({ child, foreignKey }) => findStep(context, child, foreignKey, rows, depth));
  return Promise.all(steps).then((found) => found.filter((step) => step !== null));
}

async function findStep(
  context: CascadeContext,
  child: EditedTable,
  foreignKey: EditedForeignKey,
  rows: readonly TableRow[],
  depth: number,
): Promise<CascadeStep | null> {
  const { columns, target_columns, on_delete: action } = foreignKey;
  const values = rows
    .filter((row) => target_columns.every((name) => row[name] != null))
    .map((row) => Object.fromEntries(columns.map((name, at) => [name, row[target_columns[at]!]!])));
  if (values.length === 0) return null;
  const step = { table: { schema: child.schema, name: child.name }, foreignKey, action };
  const found = child.exposed ? await readReferring(context, child, columns, values).catch(() => null) : null;
  if (!found) return { ...step, count: null, isPartial: false, steps: [] };
  if (found.count === 0) return null;
  const isFollowed = action === "cascade" && depth > 0;
  const steps = isFollowed ? await findCascade(context, child, found.rows, depth - 1) : [];
  return { ...step, count: found.count, isPartial: action === "cascade" && found.count > found.rows.length, steps };
}

async function readReferring(
  { send }: CascadeContext,
  child: EditedTable,
  columns: readonly string[],
  values: readonly TableRow[],
): Promise<{ count: number; rows: readonly TableRow[] }> {
  const select = child.columns.map(({ name }) => `${quoteField(name)}::text`).join(",");
  let count = 0;
  const rows: TableRow[] = [];
  for (const filter of keyFilters(columns, values)) {
    const query = formatQuery([["select", select], filter, ["limit", String(MAX_FOLLOWED)]]);
    const headers = { "Accept-Profile": child.schema, Prefer: "count=exact" };
    const response = await send(`${tablePath(child.name)}?${query}`, { method: "GET", headers });
    count += Number(response.headers.get("content-range")?.split("/")[1] ?? 0);
    rows.push(...((await response.json()) as TableRow[]));
  }
  return { count, rows };
}

/** Returns the known number of rows that are deleted or changed together with others. */
export function countAffected(steps: readonly CascadeStep[]): number {
  return steps
    .filter(({ action }) => action === "cascade" || action.startsWith("set"))
    .reduce((sum, { count, steps: inner }) => sum + (count ?? 0) + countAffected(inner), 0);
}

/** True if the delete will be refused, because other rows refer to rows that it would delete. */
export function isRestricted(steps: readonly CascadeStep[]): boolean {
  return steps.some(
    ({ action, count, steps: inner }) =>
      ((action === "restrict" || action === "no action") && (count ?? 0) > 0) || isRestricted(inner),
  );
}
