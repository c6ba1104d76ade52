import type { AsOwner } from "#postgres/database";
import type { Statement, StatementContext } from "#postgres/statement";
import { unavailable } from "#runtime";
import { namesClock } from "./clock-values.ts";
import type { DefinitionChanges } from "./definition-changes.ts";
import type { QueryDependencies } from "./query-dependencies.ts";
import { readQueryDependencies } from "./read-query-dependencies.ts";
import { DEPENDS_ON_TIME } from "./system-functions.ts";

const MAX_STATEMENTS = 2_000;

/** A statement of a query, as its caller runs it. */
export type CallerStatement = { readonly statement: Statement; readonly context: StatementContext };

/** `dependencies`: null while they are being read. */
type CachedRead = {
  readonly text: string;
  readonly read: Promise<QueryDependencies>;
  dependencies: QueryDependencies | null;
};

/** The dependencies of statements, read once for each statement and role until a definition changes that they name. */
export class DependencyCache {
  readonly #asOwner: AsOwner;
  readonly #publication: string;
  readonly #known = new Map<string, CachedRead>();

  constructor(asOwner: AsOwner, publication: string) {
    this.#asOwner = asOwner;
    this.#publication = publication;
  }

  /** Also forgets what is being read, which may be from before the changes. */
  forgetChanged(changes: DefinitionChanges): void {
    for (const [key, { dependencies }] of this.#known)
      if (!dependencies || changes.affect(dependencies)) this.#known.delete(key);
  }

  forgetStatements(texts: ReadonlySet<string>): void {
    for (const [key, { text }] of this.#known) if (texts.has(text)) this.#known.delete(key);
  }

  async of(statements: readonly CallerStatement[]): Promise<QueryDependencies> {
    const all = await Promise.all(statements.map((each) => this.#ofValues(each)));
    const [first] = all;
    return all.length === 1 ? first! : combine(all);
  }

  /** The dependencies of the statement with its values: a run of `now` is another query at each time. */
  async #ofValues(each: CallerStatement): Promise<QueryDependencies> {
    const dependencies = await this.#ofStatement(each);
    const values = dependencies.timeParameters.map((index) => each.statement.values[index] ?? null);
    if (!values.some((value) => value !== null && namesClock(String(value)))) return dependencies;
    return { ...dependencies, obstacles: [...dependencies.obstacles, DEPENDS_ON_TIME] };
  }

  #ofStatement({ statement, context }: CallerStatement): Promise<QueryDependencies> {
    const { text } = statement;
    const searchPath = context.settings.findLast(([name]) => name === "search_path")?.[1] ?? "";
    const key = JSON.stringify([context.role, searchPath, text]);
    const known = this.#known.get(key);
    if (known) return known.read;
    const toRead = { text, role: context.role, searchPath };
    const read = readQueryDependencies(this.#asOwner, toRead, this.#publication).catch((error: unknown) => {
      throw unavailable("The dependencies of the query could not be read: try again.", error);
    });
    if (this.#known.size >= MAX_STATEMENTS) this.#known.delete(this.#known.keys().next().value!);
    const cached: CachedRead = { text, read, dependencies: null };
    this.#known.set(key, cached);
    read.then(
      (dependencies) => {
        cached.dependencies = dependencies;
      },
      () => {
        if (this.#known.get(key) === cached) this.#known.delete(key);
      },
    );
    return read;
  }
}

function combine(all: readonly QueryDependencies[]): QueryDependencies {
  const claims = new Set<string>();
  for (const each of all) if (each.claims !== "all") for (const claim of each.claims) claims.add(claim);
  return {
    relations: all.flatMap(({ relations }) => relations.map(({ oid }) => ({ oid, reads: 0, policyColumns: null }))),
    claims: all.some((each) => each.claims === "all") ? "all" : claims,
    readsRequest: all.some(({ readsRequest }) => readsRequest),
    obstacles: all.flatMap(({ obstacles }) => obstacles),
    deciding: {
      relations: all.flatMap(({ deciding }) => deciding.relations),
      functions: all.flatMap(({ deciding }) => deciding.functions),
    },
    texts: all.flatMap(({ texts }) => texts),
    // Each of several statements has its own fingerprint, which no single query compares.
    fingerprint: "",
    rowFilters: [],
    timeParameters: [],
  };
}
