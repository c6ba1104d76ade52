import type { Statement, StatementContext, StatementResult } from "#postgres/database";
import { RecentMap } from "#runtime";
import type { EqualityFilter } from "../queries/affected-rows.ts";
import type { DependencyCache } from "../queries/dependency-cache.ts";
import type { QueryDependencies } from "../queries/query-dependencies.ts";
import { readFilterValues } from "../queries/row-filters.ts";

const MAX_BYTES = 16 * 2 ** 20;
const OVERHEAD_BYTES = 1_000;
/** Audiences of a statement whose filters are known. */
const MAX_AUDIENCES = 2_000;
/** A statement that is run once costs nothing. */
const RUNS_BEFORE_LEARNING = 2;
/** After an error. */
const PAUSE_MS = 5_000;
const REQUEST_SETTING = /^request\./;

/** A statement in one role, with settings that do not differ between the callers of it. */
export class KnownStatement {
  /** Part of the keys of its results. */
  readonly number: number;
  /** Null: not known yet. */
  dependencies: QueryDependencies | null = null;
  #runs = 0;
  #notBefore = 0;
  #isLearning = false;
  readonly #policyFilters = new Map<string, readonly EqualityFilter[] | null>();

  constructor(number: number) {
    this.number = number;
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

  /** The filters of policies, whose values differ between audiences; none while they are read. */
  policyFilters(audience: string, run: (statement: Statement) => Promise<StatementResult>): readonly EqualityFilter[] {
    const { rowFilters } = this.dependencies!;
    if (rowFilters.length === 0) return [];
    const known = this.#policyFilters.get(audience);
    if (known !== undefined) return known ?? [];
    if (this.#policyFilters.size >= MAX_AUDIENCES) this.#policyFilters.clear();
    this.#policyFilters.set(audience, null);
    readFilterValues(rowFilters, run).then(
      (filters) => this.#policyFilters.set(audience, filters),
      () => this.#policyFilters.delete(audience),
    );
    return [];
  }
}

/** The statements that were run lately. */
export class KnownStatements {
  readonly #known = new RecentMap<string, KnownStatement>(MAX_BYTES, (key) => OVERHEAD_BYTES + 2 * key.length);
  #last = 0;

  of(statement: Statement, context: StatementContext): KnownStatement {
    const key = keyOf(statement, context);
    const found = this.#known.get(key);
    if (found) return found;
    const made = new KnownStatement(++this.#last);
    this.#known.set(key, made);
    return made;
  }

  forget(): void {
    this.#known.clear();
  }
}

/** Settings of the single request are part of no key: a result that depends on them is not kept, except for the claims. */
function keyOf({ text }: Statement, { role, settings }: StatementContext): string {
  const own = settings.filter(([name]) => !REQUEST_SETTING.test(name));
  return JSON.stringify([role, own, text]);
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
