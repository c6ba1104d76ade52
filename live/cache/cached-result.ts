import { type ChangeFilter, countKeys, type ResultContents } from "../queries/affected-rows.ts";
import type { QueryDependencies } from "../queries/query-dependencies.ts";
import type { AffectingXids } from "../queries/shared-result.ts";
import type { KnownStatement } from "./known-statements.ts";

/** Of an entry in the maps, besides its texts. */
const OVERHEAD_BYTES = 1_500;
/** Of a value in the index of filters. */
const FILTER_VALUE_BYTES = 300;
const KEY_BYTES = 150;
const MAX_ATTACHED = 4;

/** The result of a statement for one audience, from the moment when it is run until a commit may change it. */
export class CachedResult {
  readonly key: string;
  readonly audience: string;
  readonly statement: KnownStatement;
  readonly dependencies: QueryDependencies;
  readonly filters: readonly ChangeFilter[];
  /** What its rows tell about later changes. Null while it is run. */
  contents: ResultContents | null = null;
  /** A change of its rows drops it. */
  readonly tableRows = null;
  value: unknown = undefined;
  bytes = 0;
  /** Whether it is in the cache: then it has all commits that the stream has delivered. */
  isCurrent = false;
  hits = 0;
  /** Whether it was read since its turn to be evicted. */
  isUsed = false;
  /** Transactions that were delivered while it was run. */
  readonly xids = new Set<number>();
  readonly #onDropped: (() => void)[] = [];

  constructor(
    key: string,
    audience: string,
    { statement, dependencies, filters }: Pick<CachedResult, "statement" | "dependencies" | "filters">,
  ) {
    this.statement = statement;
    this.key = key;
    this.audience = audience;
    this.dependencies = dependencies;
    this.filters = filters;
  }

  accept(value: unknown, bytes: number): void {
    this.value = value;
    const values = this.filters.reduce((sum, filter) => sum + ("values" in filter ? filter.values.length : 1), 0);
    this.bytes = bytes + 2 * this.key.length + OVERHEAD_BYTES + values * FILTER_VALUE_BYTES;
  }

  /** To be called with what the index was given. */
  countContents(contents: ResultContents | null): void {
    const filters = contents?.filters.length ?? 0;
    this.bytes += filters * FILTER_VALUE_BYTES + countKeys(contents) * KEY_BYTES;
  }

  addXids(xids: AffectingXids): void {
    for (const each of xids) for (const xid of each) this.xids.add(xid);
  }

  /** Whether something was made of it that goes with it; false if there is enough of that. */
  attach(bytes: number, onDropped: () => void): boolean {
    if (!this.isCurrent || this.#onDropped.length >= MAX_ATTACHED) return false;
    this.#onDropped.push(onDropped);
    this.bytes += bytes;
    return true;
  }

  drop(): void {
    this.isCurrent = false;
    for (const callback of this.#onDropped.splice(0)) callback();
  }
}
