import type { DescribedColumn } from "../api/catalog.ts";
import type { Children } from "../html.ts";
import { html } from "../html.ts";
import { texts } from "../texts.ts";

/** The maximum length of a cell, which shows one line. */
const MAX_SHOWN = 240;

/** Shows a value as shortened text, with null and the empty text distinguished from all others. */
export function cellContent(
  value: string | null | undefined,
  column: Pick<DescribedColumn, "base_type" | "type_kind">,
): Children {
  if (value === null || value === undefined) return html`<span class="cell-null">${texts.tables.null}</span>`;
  if (value === "") return html`<span class="cell-null">${texts.tables.emptyText}</span>`;
  const shown = cutText(value).replace(/\r?\n/g, " ⏎ ");
  const kind = isCode(column) ? "mono" : column.base_type === "boolean" ? `cell-${value}` : undefined;
  return kind ? html`<span class=${kind}>${shown}</span>` : shown;
}

/** Cuts a long value, without half of a character at its end. */
export function cutText(value: string, length = MAX_SHOWN): string {
  return value.length <= length ? value : `${value.slice(0, length).replace(/[\uD800-\uDBFF]$/, "")}…`;
}

function isCode({ base_type: type, type_kind: kind }: Pick<DescribedColumn, "base_type" | "type_kind">): boolean {
  return kind === "array" || kind === "composite" || /^(jsonb?|bytea|uuid|xml|bit|bit varying)$/.test(type);
}
