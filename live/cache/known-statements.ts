import type { Statement, StatementContext, StatementResult } from "#postgres/database";
import { RecentMap } from "#runtime";
import type { ChangeFilter } from "../queries/affected-rows.ts";
import type { DependencyCache } from "../queries/dependency-cache.ts";
import type { QueryDependencies } from "../queries/query-dependencies.ts";
import { readFilterValues } from "../queries/row-filters.ts";

const MAX_BYTES = 16 * 2 ** 20;
const OVERHEAD_BYTES = 1_000;
/** Of all audiences whose filters are known. */
const MAX_FILTER_BYTES = 8 * 2 ** 20;
const FILTER_BYTES = 300;
/** A statement that is run once costs nothing. */
const RUNS_BEFORE_LEARNING = 2;
/** So many drops show whether results are read before. */
const DROPS_TO_JUDGE = 100;
/** After an error, and after useless results. */
const PAUSE_MS = 5_000;
const REQUEST_PREFIX = "request.";
/** Of one text. */
const MAX_CONTEXTS = 100;

/** The filters of policies for an audience; null while they are not known. */
type AudienceFilters = { filters: readonly ChangeFilter[] | null; isReading: boolean; readonly bytes: number };
type KnownFilters = RecentMap<string, AudienceFilters>;

/** A statement in one role, with settings that do not differ between the callers of it. */
export class KnownStatement {
  /** Part of the keys of its results. */
  readonly number: number;
  /** Null: not known yet. */
  dependencies: QueryDependencies | null = null;
  #runs = 0;
  #notBefore = 0;
  #isLearning = false;
  #drops = 0;
  #hits = 0;
  #keptFrom = 0;
  readonly #knownFilters: KnownFilters;

  constructor(number: number, knownFilters: KnownFilters) {
    this.number = number;
    this.#knownFilters = knownFilters;
  }

  /** Reads the dependencies when it has run often enough. The run that calls does not wait for them. */
  ran(query: { readonly statement: Statement; readonly context: StatementContext }, cache: DependencyCache): void {
    this.#runs++;
    if (this.#isLearning || this.#runs < RUNS_BEFORE_LEARNING || performance.now() < this.#notBefore) return;
    this.#isLearning = true;
    const read = cache.of({ statements: [query] });
    read
      .then(
        (dependencies) => {
          this.dependencies = dependencies;
        },
        () => {
          this.#notBefore = performance.now() + PAUSE_MS;
        },
      )
      .finally(() => {
        this.#isLearning = false;
      });
  }

  /** False for a while after most results were dropped before they were read again: keeping one costs more than a run. */
  get isKept(): boolean {
    return performance.now() >= this.#keptFrom;
  }

  /** A commit has dropped a result that was read so many times. */
  dropped(hits: number): void {
    this.#hits += hits;
    if (++this.#drops < DROPS_TO_JUDGE) return;
    if (this.#hits < this.#drops) this.#keptFrom = performance.now() + PAUSE_MS;
    [this.#drops, this.#hits] = [0, 0];
  }

  /** The filters of policies, whose values differ between audiences; none while they are read. */
  policyFilters(audience: string, run: (statement: Statement) => Promise<StatementResult>): readonly ChangeFilter[] {
    const { rowFilters } = this.dependencies!;
    if (rowFilters.length === 0) return [];
    const key = `${this.number} ${audience}`;
    const values = rowFilters.reduce((sum, { expressions }) => sum + expressions.length, 0);
    const known = this.#knownFilters.get(key) ?? { filters: null, isReading: false, bytes: values * FILTER_BYTES };
    if (known.filters || known.isReading) return known.filters ?? [];
    this.#knownFilters.set(key, known);
    known.isReading = true;
    readFilterValues(rowFilters, run)
      .then(
        (filters) => {
          known.filters = filters;
        },
        () => {},
      )
      .finally(() => {
        known.isReading = false;
      });
    return [];
  }
}

/** The statements that were run lately. */
export class KnownStatements {
  /** By text, which is the same string each time, then by role and settings. */
  readonly #known = new RecentMap<string, Map<string, KnownStatement>>(
    MAX_BYTES,
    (text) => OVERHEAD_BYTES + 2 * text.length,
  );
  readonly #filters: KnownFilters = new RecentMap<string, AudienceFilters>(
    MAX_FILTER_BYTES,
    (key, { bytes }) => 2 * key.length + bytes,
  );
  #last = 0;

  of({ text }: Statement, context: StatementContext): KnownStatement {
    const byContext = this.#known.get(text) ?? new Map<string, KnownStatement>();
    const key = contextKey(context);
    const found = byContext.get(key);
    if (found) return found;
    const made = new KnownStatement(++this.#last, this.#filters);
    if (byContext.size >= MAX_CONTEXTS) byContext.clear();
    byContext.set(key, made);
    if (byContext.size === 1) this.#known.set(text, byContext);
    return made;
  }

  forget(): void {
    this.#known.clear();
    this.#filters.clear();
  }
}

/** Settings of the single request are part of no key: a result that depends on them is not kept, except for the claims. */
function contextKey({ role, settings }: StatementContext): string {
  let key = role;
  for (const [name, value] of settings)
    if (!name.startsWith(REQUEST_PREFIX)) key += `\n${name} ${value.length} ${value}`;
  return key;
}

/** Why results that depend on these are not kept; null if they are. */
export function cacheObstacleOf({
  obstacles: [obstacle],
  readsRequest,
  fingerprint,
}: QueryDependencies): string | null {
  if (obstacle !== undefined) return obstacle;
  if (readsRequest) return "it depends on the request, such as its headers";
  return fingerprint === "" ? "its definitions are unknown" : null;
}
