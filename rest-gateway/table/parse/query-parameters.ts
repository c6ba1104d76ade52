import type { CursorPage, OrderTerm, RowCondition, SelectItem, WithEmbedPath } from "#planner";
import { memoizeRecent } from "#runtime";
import { parseColumns, parseLogicPath, parsePath } from "./field.ts";
import { parseFilter, parseLogic } from "./filter.ts";
import type { UrlParameter } from "./query-string.ts";
import { isCursor, parseBound, parseCursor, type RangeBounds } from "./row-range.ts";
import { parseOrder, parseSelect, SELECT_ALL } from "./select.ts";

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
  const sorter = new ParameterSorter(withArguments);
  for (const [name, value] of parameters) sorter.add(name, value);
  return sorter.sorted();
}

class ParameterSorter {
  #select: readonly SelectItem[] | null = null;
  #columns: readonly string[] | null = null;
  #onConflict: readonly string[] | null = null;
  #page: CursorPage | null = null;
  readonly #conditions: WithEmbedPath<RowCondition>[] = [];
  readonly #orders: WithEmbedPath<readonly OrderTerm[]>[] = [];
  readonly #bounds = new Map<string, RangeBounds>();
  readonly #arguments: UrlParameter[] = [];
  readonly #withArguments: boolean;

  constructor(withArguments: boolean) {
    this.#withArguments = withArguments;
  }

  add(name: string, value: string): void {
    const lastDot = name.lastIndexOf(".");
    switch (name.slice(lastDot + 1)) {
      case "order":
        this.#orders.push({ path: embedPathOf(name), value: parseOrderCached(value) });
        break;
      case "limit":
        this.#setBound(name.slice(0, lastDot + 1), { path: embedPathOf(name), limit: parseBound(value) });
        break;
      case "offset":
        this.#setBound(name.slice(0, lastDot + 1), { path: embedPathOf(name), offset: parseBound(value) });
        break;
      case "and":
      case "or":
        this.#addLogic(name, value);
        break;
      default:
        if (name === "select") this.#select ??= parseSelectCached(value);
        else if (name === "columns") this.#columns ??= parseColumns(name, value);
        else if (name === "on_conflict") this.#onConflict ??= parseColumns(name, value);
        else if (name === "cursor" && isCursor(value)) this.#setCursor(name, value);
        else this.#addFilter(name, value);
    }
  }

  sorted(): QueryParameters {
    return {
      select: this.#select?.length ? this.#select : SELECT_ALL,
      conditions: this.#conditions,
      orders: this.#orders,
      bounds: [...this.#bounds.values()],
      page: this.#page,
      columns: this.#columns,
      onConflict: this.#onConflict,
      arguments: this.#arguments,
    };
  }

  #setBound(path: string, bound: Pick<RangeBounds, "path"> & Partial<RangeBounds>): void {
    this.#bounds.set(path, { limit: null, offset: null, ...this.#bounds.get(path), ...bound });
  }

  #addLogic(name: string, value: string): void {
    const { path, operator } = parseLogicPath(name);
    this.#conditions.push({ path, value: parseLogic(operator, value) });
  }

  /** Only the catalogue knows whether the function has an argument of that name. */
  #setCursor(name: string, value: string): void {
    this.#page ??= parseCursor(value);
    if (this.#withArguments) this.#arguments.push([name, value]);
  }

  #addFilter(name: string, value: string): void {
    const { path, field } = parsePathCached(name);
    const condition = parseFilter(field, value, { orArgument: this.#withArguments });
    if (condition === null) this.#arguments.push([field.name, value]);
    else this.#conditions.push({ path, value: condition });
  }
}

/** Where `author.order` and the like belong. */
function embedPathOf(name: string): readonly string[] {
  return name.includes(".") ? parsePath(name).path : [];
}
