import type { Table } from "../../../engine/catalog/tables.ts";
import { EVERY_COLUMN } from "../intent.ts";
import type { Result } from "./plan.ts";
import type { Scope } from "./scope.ts";
import { type Planning, planRows } from "./select.ts";
import type { Output, Selection } from "./selection.ts";
import { column } from "./selection.ts";
import type { Node } from "./tree.ts";

type Planned = { readonly rows: Selection; readonly result: Result };

/** Rows read from what a statement has done before: only what is needed of them is kept for that. */
export function planResult(node: Node, scope: Scope, table: Table | null, planning: Planning): Planned {
  const type = table && { schema: table.schema, name: table.name };
  const inResult = { ...scope, composed: type && { type, columns: [...scope.columns.keys()] } };
  const rows = planRows(node, { scope: inResult, source: { kind: "result" }, join: [] }, planning);
  const wholeRow = scope.used.has(EVERY_COLUMN.name);
  const computed = [...scope.used].filter((name) => scope.computed.has(name) && !scope.columns.has(name));
  const columns = [...scope.used].filter((name) => scope.columns.has(name));
  return {
    // What was computed lies beside the columns, but is none of them.
    rows: computed.length > 0 ? { ...rows, outputs: rows.outputs.flatMap((output) => expand(output, scope)) } : rows,
    result: { wholeRow, names: wholeRow ? computed : [...columns, ...computed] },
  };
}

function expand(output: Output, { columns, alias }: Scope): Output[] {
  if (output.kind !== "all") return [output];
  return [...columns.keys()].map((name) => ({ kind: "value", name, value: column(alias, name), isAggregate: false }));
}
