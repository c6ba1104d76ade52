import { decidesOn, type ResultContents } from "./affected-rows.ts";
import { type MatchedResult, RelationResults } from "./relation-results.ts";

type DependentResult = MatchedResult & {
  readonly dependencies: { readonly relations: readonly { readonly oid: number }[] };
};

/** The results that are kept up to date, by the relations that they depend on. */
export class ResultIndex<Result extends DependentResult> {
  readonly #byRelation = new Map<number, RelationResults<Result>>();

  of(relation: number): RelationResults<Result> | undefined {
    return this.#byRelation.get(relation);
  }

  has(result: Result): boolean {
    return relationsOf(result).every((oid) => this.#byRelation.get(oid)?.has(result));
  }

  add(result: Result): void {
    for (const oid of relationsOf(result)) {
      const results = this.#byRelation.get(oid) ?? new RelationResults<Result>(oid);
      results.add(result);
      this.#byRelation.set(oid, results);
    }
  }

  remove(result: Result): void {
    for (const oid of relationsOf(result)) {
      const results = this.#byRelation.get(oid);
      results?.remove(result);
      if (results?.isEmpty) this.#byRelation.delete(oid);
    }
  }

  /** `change` gives the result these contents. The relations on which they do not decide stay as they are. */
  changeContents(result: Result, contents: ResultContents | null, change: () => void): void {
    const before = result.contents;
    const changed = relationsOf(result)
      .filter((oid) => decidesOn(before, oid) || decidesOn(contents, oid))
      .flatMap((oid) => this.#byRelation.get(oid) ?? []);
    for (const results of changed) results.remove(result);
    change();
    for (const results of changed) results.add(result);
  }
}

function relationsOf({ dependencies }: DependentResult): number[] {
  return [...new Set(dependencies.relations.map(({ oid }) => oid))];
}
