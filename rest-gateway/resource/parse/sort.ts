import type { OrderTerm } from "../../statement/intent.ts";
import type { Collection } from "../collections.ts";
import { invalid } from "../refusals.ts";
import { nearMiss } from "./near-miss.ts";

type Direction = "asc" | "desc";

/** `sort=status:desc,title`, or `sort=title&order=desc`. A key completes it, so that pages neither repeat nor lose rows. */
export function parseSort(sort: string | undefined, order: string | undefined, collection: Collection): OrderTerm[] {
  const fallback = order === undefined ? "asc" : toDirection("order", order);
  const terms = sort === undefined ? [] : sort.split(",").map((term) => parseTerm(term, fallback, collection));
  const named = new Set(terms.map(({ field }) => field.name));
  const direction = terms.at(-1)?.direction ?? fallback;
  const rest = collection.key.filter(({ column }) => !named.has(column.name));
  return [...terms, ...rest.map(({ column }) => toTerm(column.name, direction))];
}

function parseTerm(term: string, fallback: Direction, { fields }: Collection): OrderTerm {
  const sortable = fields.filter(({ sortable }) => sortable);
  const names = sortable.map((field) => field.name);
  // A column may have colons in its name.
  const colon = names.includes(term) ? -1 : term.lastIndexOf(":");
  const name = colon < 0 ? term : term.slice(0, colon);
  const direction = colon < 0 ? undefined : term.slice(colon + 1);
  const found = sortable.find((field) => field.name === name);
  if (!found) {
    throw invalid([
      { field: "sort", message: `There is no field ${quoted(term)} to sort by.${nearMiss(name, names)}` },
    ]);
  }
  return toTerm(found.column.name, direction === undefined ? fallback : toDirection("sort", direction));
}

function toDirection(parameter: string, text: string): Direction {
  const direction = text.toLowerCase();
  if (direction === "asc" || direction === "desc") return direction;
  throw invalid([{ field: parameter, message: `The direction must be asc or desc, not ${quoted(text)}.` }]);
}

function toTerm(name: string, direction: Direction): OrderTerm {
  return { field: { name, path: [] }, relation: null, direction, nulls: null };
}

function quoted(text: string): string {
  return JSON.stringify(text);
}
