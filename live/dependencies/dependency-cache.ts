import type { AsOwner } from "#postgres/database";
import type { Statement, StatementContext } from "#postgres/statement";
import { unavailable } from "#runtime";
import { type QueryDependencies, readQueryDependencies } from "./query-dependencies.ts";

const MAX_STATEMENTS = 2_000;

/** A statement of a query, as its caller runs it. */
export type CallerStatement = { readonly statement: Statement; readonly context: StatementContext };

/** The dependencies of statements, read once for each statement and role until a definition changes. */
export class DependencyCache {
  readonly #asOwner: AsOwner;
  readonly #publication: string;
  #known = new Map<string, Promise<QueryDependencies>>();

  constructor(asOwner: AsOwner, publication: string) {
    this.#asOwner = asOwner;
    this.#publication = publication;
  }

  forget(): void {
    this.#known = new Map();
  }

  async of(statements: readonly CallerStatement[]): Promise<QueryDependencies> {
    const all = await Promise.all(statements.map((each) => this.#ofStatement(each)));
    const [first] = all;
    return all.length === 1 ? first! : combine(all);
  }

  #ofStatement({ statement, context }: CallerStatement): Promise<QueryDependencies> {
    const searchPath = context.settings.findLast(([name]) => name === "search_path")?.[1] ?? "";
    const key = JSON.stringify([context.role, searchPath, statement.text]);
    const found = this.#known.get(key);
    if (found) return found;
    const known = this.#known;
    const toRead = { text: statement.text, role: context.role, searchPath };
    const read = readQueryDependencies(this.#asOwner, toRead, this.#publication).catch((error: unknown) => {
      throw unavailable("The dependencies of the query could not be read: try again.", error);
    });
    if (known.size >= MAX_STATEMENTS) known.delete(known.keys().next().value!);
    known.set(key, read);
    read.catch(() => known.delete(key));
    return read;
  }
}

function combine(all: readonly QueryDependencies[]): QueryDependencies {
  const claims = new Set<string>();
  for (const each of all) if (each.claims !== "all") for (const claim of each.claims) claims.add(claim);
  return {
    relations: all.flatMap(({ relations }) =>
      relations.map(({ oid }) => ({ oid, isReadOnce: false, policyColumns: null })),
    ),
    claims: all.some((each) => each.claims === "all") ? "all" : claims,
    readsRequest: all.some(({ readsRequest }) => readsRequest),
    obstacles: all.flatMap(({ obstacles }) => obstacles),
    deciding: {
      relations: all.flatMap(({ deciding }) => deciding.relations),
      functions: all.flatMap(({ deciding }) => deciding.functions),
    },
    // Each of several statements has its own fingerprint, which no single query compares.
    fingerprint: "",
    rowFilters: [],
  };
}
