import { type LiveQueryResult, RelationResults } from "./relation-results.ts";

/** The results that are kept up to date, by the relations that they depend on. */
export class ResultIndex {
  readonly #byRelation = new Map<number, RelationResults>();

  of(relation: number): RelationResults | undefined {
    return this.#byRelation.get(relation);
  }

  has(result: LiveQueryResult): boolean {
    return relationsOf(result).every((oid) => this.#byRelation.get(oid)?.has(result));
  }

  add(result: LiveQueryResult): void {
    for (const oid of relationsOf(result)) {
      const results = this.#byRelation.get(oid) ?? new RelationResults(oid);
      results.add(result);
      this.#byRelation.set(oid, results);
    }
  }

  remove(result: LiveQueryResult): void {
    for (const oid of relationsOf(result)) {
      const results = this.#byRelation.get(oid);
      results?.remove(result);
      if (results?.isEmpty) this.#byRelation.delete(oid);
    }
  }
}

function relationsOf({ dependencies }: LiveQueryResult): number[] {
  return [...new Set(dependencies.relations.map(({ oid }) => oid))];
}
