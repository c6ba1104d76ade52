import { remember } from "../../../engine/remember.ts";
import type { Condition, OrderTerm, Page, Placed, SelectItem } from "../../statement/intent.ts";
import { isCursor, parseCursor } from "../cursor.ts";
import { parseColumns } from "./columns.ts";
import { parseFilter } from "./filter.ts";
import { parseLogic } from "./logic.ts";
import { parseOrder } from "./order.ts";
import { parseLogicPath, parsePath } from "./path.ts";
import type { Parameter } from "./query-string.ts";
import { parseSelect, SELECT_EVERYTHING } from "./select.ts";
import { type Bounds, parseBound } from "./window.ts";

export type Query = {
  readonly select: readonly SelectItem[];
  readonly conditions: readonly Placed<Condition>[];
  readonly orders: readonly Placed<readonly OrderTerm[]>[];
  readonly bounds: readonly Bounds[];
  readonly page: Page | null;
  readonly columns: readonly string[] | null;
  readonly onConflict: readonly string[] | null;
  /** What a function that is called by GET is given. */
  readonly arguments: readonly Parameter[];
};

/** Clients write the same ones again and again: what was made of them is the same, too. */
const MOST_REMEMBERED = 500;
const selectOf = remember(MOST_REMEMBERED, parseSelect);
const orderOf = remember(MOST_REMEMBERED, parseOrder);
const pathOf = remember(MOST_REMEMBERED, parsePath);

/** Sorts parameters by what they are about. With `withArguments` one whose value names no operator is an argument. */
export function parseQuery(parameters: readonly Parameter[], { withArguments }: { withArguments: boolean }): Query {
  let select: readonly SelectItem[] | null = null;
  let columns: readonly string[] | null = null;
  let onConflict: readonly string[] | null = null;
  const conditions: Placed<Condition>[] = [];
  const orders: Placed<readonly OrderTerm[]>[] = [];
  const bounds = new Map<string, Bounds>();
  let page: Page | null = null;
  const callArguments: Parameter[] = [];

  for (const [name, value] of parameters) {
    const lastDot = name.lastIndexOf(".");
    switch (name.slice(lastDot + 1)) {
      case "order":
        orders.push({ path: placeOf(name), value: orderOf(value) });
        break;
      case "limit":
        bound(name.slice(0, lastDot + 1), { path: placeOf(name), limit: parseBound(value) });
        break;
      case "offset":
        bound(name.slice(0, lastDot + 1), { path: placeOf(name), offset: parseBound(value) });
        break;
      case "and":
      case "or":
        logic(name, value);
        break;
      default:
        if (name === "select") select ??= selectOf(value);
        else if (name === "columns") columns ??= parseColumns(name, value);
        else if (name === "on_conflict") onConflict ??= parseColumns(name, value);
        else if (name === "cursor" && isCursor(value)) cursor(name, value);
        else filter(name, value);
    }
  }
  return {
    select: select?.length ? select : SELECT_EVERYTHING,
    conditions,
    orders,
    bounds: [...bounds.values()],
    page,
    columns,
    onConflict,
    arguments: callArguments,
  };

  function bound(place: string, said: Pick<Bounds, "path"> & Partial<Bounds>): void {
    bounds.set(place, { limit: null, offset: null, ...bounds.get(place), ...said });
  }

  function logic(name: string, value: string): void {
    const { path, operator } = parseLogicPath(name);
    conditions.push({ path, value: parseLogic(operator, value) });
  }

  /** Whether the function has an argument of that name is for the catalogue to say. */
  function cursor(name: string, value: string): void {
    page ??= parseCursor(value);
    if (withArguments) callArguments.push([name, value]);
  }

  function filter(name: string, value: string): void {
    const { path, field } = pathOf(name);
    const condition = parseFilter(field, value, { orArgument: withArguments });
    if (condition === null) callArguments.push([field.name, value]);
    else conditions.push({ path, value: condition });
  }
}

/** Where `author.order` and the like belong. */
function placeOf(name: string): readonly string[] {
  return name.includes(".") ? parsePath(name).path : [];
}
