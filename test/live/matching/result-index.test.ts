import { expect, test } from "vitest";
import type { ChangeFilter, ResultContents } from "../../../live/matching/affected-rows.ts";
import { ResultIndex } from "../../../live/matching/result-index.ts";
import type { RowChange } from "../../../live/stream/changes.ts";
import { propertyRuns } from "../../property-runs.ts";
import { makeRandom } from "../queries/random.ts";

const [TASKS, LISTS] = [7, 8];
const COLUMNS = ["id", "list"].map((name) => ({ name, typeName: "int4", isIdentity: name === "id" }));

type Indexed = {
  readonly filters: readonly ChangeFilter[];
  contents: ResultContents | null;
  readonly tableRows: null;
  readonly dependencies: { readonly relations: readonly { readonly oid: number }[] };
};

const without: ResultContents = { filters: [], arriving: [], shown: [] };
const upTo = (relation: number, greatest: string) => ({ relation, column: "id", least: null, greatest });
const shows = (relation: number, ...keys: string[]) => ({ relation, columns: ["id"], keys: new Set(keys) });

function makeResult(contents: ResultContents | null, filters: readonly ChangeFilter[] = []): Indexed {
  return { filters, contents, tableRows: null, dependencies: { relations: [{ oid: TASKS }, { oid: LISTS }] } };
}

function changeOf(oid: number, before: readonly string[] | null, after: readonly string[] | null): RowChange {
  const kind = before && after ? "UPDATE" : before ? "DELETE" : "INSERT";
  return { kind, relation: { oid, columns: COLUMNS }, old: before, new: after } as unknown as RowChange;
}

function affectedBy(index: ResultIndex<Indexed>, change: RowChange): Set<Indexed> {
  const { results, groups } = index.of(change.relation.oid)!.affectedBy(change);
  return new Set([...results, ...[...groups].flatMap((group) => [...group.results.keys()])]);
}

test("contents decide on changes of the relations that they name, and on no others", () => {
  const index = new ResultIndex<Indexed>();
  const result = makeResult(null);
  index.add(result);
  const decide = () => [TASKS, LISTS].map((oid) => index.of(oid)!.dependsOnContents);
  const change = (contents: ResultContents | null) =>
    index.changeContents(result, contents, () => {
      result.contents = contents;
    });
  expect(decide()).toEqual([false, false]);
  change({ ...without, filters: [upTo(LISTS, "3")] });
  expect(decide()).toEqual([false, true]);
  change({ ...without, shown: [shows(TASKS, "3")] });
  expect(decide()).toEqual([true, false]);
  change(null);
  expect(decide()).toEqual([false, false]);
});

test("after random changes of contents, an index finds the results that a new index finds", () => {
  const random = makeRandom(5);
  const oneOf = <Item>(items: readonly Item[]): Item => items[random(items.length)]!;
  const number = () => String(random(6));
  const makeContents = (): ResultContents | null => {
    const relation = oneOf([TASKS, LISTS]);
    return oneOf([
      null,
      { ...without, filters: [upTo(relation, number())] },
      { ...without, filters: [{ relation, column: "list", values: [number(), number()] }] },
      { ...without, arriving: [upTo(relation, number())] },
      {
        ...without,
        filters: [upTo(TASKS, number())],
        shown: [shows(TASKS, number(), number()), shows(LISTS, number())],
      },
    ]);
  };
  const index = new ResultIndex<Indexed>();
  const results = Array.from({ length: 12 }, () =>
    makeResult(
      makeContents(),
      oneOf([[], [upTo(TASKS, number())], [{ relation: LISTS, column: "list", values: [number()] }]]),
    ),
  );
  const known = new Map(results.map((result) => [result, [null, result.contents, makeContents()]]));
  for (const result of results) index.add(result);
  for (let step = 0; step < propertyRuns(5_000); step++) {
    const result = oneOf(results);
    const contents = oneOf([...known.get(result)!, makeContents()]);
    index.changeContents(result, contents, () => {
      result.contents = contents;
    });
    const fresh = new ResultIndex<Indexed>();
    for (const each of results) fresh.add(each);
    const row = () => oneOf([null, [number(), number()]]);
    const change = changeOf(oneOf([TASKS, LISTS]), row(), [number(), number()]);
    expect(affectedBy(index, change)).toEqual(affectedBy(fresh, change));
  }
});
