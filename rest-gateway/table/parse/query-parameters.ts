import { memoizeRecent } from "../../../engine/cache/memoize.ts";
import type {
  CursorPage,
  OrderTerm,
  RowCondition,
  SelectItem,
  WithEmbedPath,
} from "../../../engine/statement/intent.ts";
import { isCursor, parseCursor } from "./cursor.ts";
import { parseColumns, parseLogicPath, parsePath } from "./field.ts";
import { parseFilter, parseLogic } from "./filter.ts";
import { parseOrder } from "./order.ts";
import type { UrlParameter } from "./query-string.ts";
import { parseBound, type RangeBounds } from "./row-range.ts";
import { parseSelect, SELECT_ALL } from "./select.ts";

export type QueryParameters = {
  readonly select: readonly SelectItem[];
  readonly conditions: readonly WithEmbedPath<RowCondition>[];
  readonly orders: readonly WithEmbedPath<readonly OrderTerm[]>[];
  readonly bounds: readonly RangeBounds[];
  readonly page: CursorPage | null;
  readonly columns: readonly string[] | null;
  readonly onConflict: readonly string[] | null;
  /** The arguments of a function called by GET. */
  readonly arguments: readonly UrlParameter[];
};

/** Clients repeat the same texts, so their parse results are cached. */
const MAX_REMEMBERED = 500;
const parseSelectCached = memoizeRecent(MAX_REMEMBERED, parseSelect);
const parseOrderCached = memoizeRecent(MAX_REMEMBERED, parseOrder);
const parsePathCached = memoizeRecent(MAX_REMEMBERED, parsePath);

/** Sorts parameters by what they are about. With `withArguments` one whose value names no operator is an argument. */
export function parseQueryParameters(
  parameters: readonly UrlParameter[],
  { withArguments }: { withArguments: boolean },
): QueryParameters {
  let select: readonly SelectItem[] | null = null;
  let columns: readonly string[] | null = null;
  let onConflict: readonly string[] | null = null;
  const conditions: WithEmbedPath<RowCondition>[] = [];
  const orders: WithEmbedPath<readonly OrderTerm[]>[] = [];
  const bounds = new Map<string, RangeBounds>();
  let page: CursorPage | null = null;
  const callArguments: UrlParameter[] = [];

  for (const [name, value] of parameters) {
    const lastDot = name.lastIndexOf(".");
    switch (name.slice(lastDot + 1)) {
      case "order":
        orders.push({ path: embedPathOf(name), value: parseOrderCached(value) });
        break;
      case "limit":
        setBound(name.slice(0, lastDot + 1), { path: embedPathOf(name), limit: parseBound(value) });
        break;
      case "offset":
        setBound(name.slice(0, lastDot + 1), { path: embedPathOf(name), offset: parseBound(value) });
        break;
      case "and":
      case "or":
        addLogic(name, value);
        break;
      default:
        if (name === "select") select ??= parseSelectCached(value);
        else if (name === "columns") columns ??= parseColumns(name, value);
        else if (name === "on_conflict") onConflict ??= parseColumns(name, value);
        else if (name === "cursor" && isCursor(value)) setCursor(name, value);
        else addFilter(name, value);
    }
  }
  return {
    select: select?.length ? select : SELECT_ALL,
    conditions,
    orders,
    bounds: [...bounds.values()],
    page,
    columns,
    onConflict,
    arguments: callArguments,
  };

  function setBound(path: string, bound: Pick<RangeBounds, "path"> & Partial<RangeBounds>): void {
    bounds.set(path, { limit: null, offset: null, ...bounds.get(path), ...bound });
  }

  function addLogic(name: string, value: string): void {
    const { path, operator } = parseLogicPath(name);
    conditions.push({ path, value: parseLogic(operator, value) });
  }

  /** Only the catalogue knows whether the function has an argument of that name. */
  function setCursor(name: string, value: string): void {
    page ??= parseCursor(value);
    if (withArguments) callArguments.push([name, value]);
  }

  function addFilter(name: string, value: string): void {
    const { path, field } = parsePathCached(name);
    const condition = parseFilter(field, value, { orArgument: withArguments });
    if (condition === null) callArguments.push([field.name, value]);
    else conditions.push({ path, value: condition });
  }
}

/** Where `author.order` and the like belong. */
function embedPathOf(name: string): readonly string[] {
  return name.includes(".") ? parsePath(name).path : [];
}
