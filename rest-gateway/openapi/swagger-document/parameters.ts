import type { Column } from "../../../engine/catalog/columns.ts";
import type { Table } from "../../../engine/catalog/tables.ts";
import { readComment } from "../comment.ts";
import { RESERVED } from "../reserved-names.ts";

const RETURN = ["return=representation", "return=minimal", "return=none"];

/** Names and descriptions are PostgREST's. */
export const SHARED_PARAMETERS: readonly (readonly [string, object])[] = [
  ["preferParams", header("Prefer", "Preference")],
  ["preferReturn", { ...header("Prefer", "Preference"), enum: RETURN }],
  ["preferCount", { ...header("Prefer", "Preference"), enum: ["count=none"] }],
  [
    "preferPost",
    {
      ...header("Prefer", "Preference"),
      enum: [...RETURN, "resolution=ignore-duplicates", "resolution=merge-duplicates"],
    },
  ],
  ["select", query("select", "Filtering Columns")],
  ["on_conflict", query("on_conflict", "On Conflict")],
  ["order", query("order", "Ordering")],
  ["range", header("Range", "Limiting and Pagination")],
  ["rangeUnit", { ...header("Range-Unit", "Limiting and Pagination"), default: "items" }],
  ["offset", query("offset", "Limiting and Pagination")],
  ["limit", query("limit", "Limiting and Pagination")],
];

export function* tableParameters({ name }: Table, columns: readonly Column[]): Generator<[string, object]> {
  const schema = referTo("definitions", name);
  yield [`body.${name}`, { name, description: name, required: false, in: "body", schema }];
  for (const column of filterable(columns)) {
    yield [rowFilterKey(name, column.name), query(column.name, readComment(column.comment).text)];
  }
}

export function rowFilterKeys({ name }: Table, columns: readonly Column[]): string[] {
  return filterable(columns).map((column) => rowFilterKey(name, column.name));
}

function filterable(columns: readonly Column[]): readonly Column[] {
  return columns.filter(({ name }) => !RESERVED.has(name));
}

function rowFilterKey(table: string, column: string): string {
  return `rowFilter.${table}.${column}`;
}

export type Reference = { readonly $ref: string };

export function referTo(section: "definitions" | "parameters", key: string): Reference {
  const pointer = key.replaceAll("~", "~0").replaceAll("/", "~1");
  return { $ref: `#/${section}/${encodeURIComponent(pointer)}` };
}

function query(name: string, description: string | undefined) {
  return { name, description, required: false, in: "query", type: "string" };
}

function header(name: string, description: string) {
  return { name, description, required: false, in: "header", type: "string" };
}
