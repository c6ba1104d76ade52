import type { ArchivedStatement } from "../archive-format.ts";

/** The identity of an object: its system catalogue and its number there. */
type ObjectId = { readonly catalog: number; readonly oid: number };

export type CatalogObject = ObjectId &
  ArchivedStatement & {
    /** Independent objects of a lower rank come first. */
    readonly rank: number;
  };

/** A row of pg_depend. */
export type CatalogDependency = ObjectId & {
  readonly onCatalog: number;
  readonly onOid: number;
  readonly kind: string;
};

/** Kinds of dependencies by which an object is a part of another: internal, partition, extension. */
const PART_KINDS = ["i", "P", "S", "e"];

export function keyOf({ catalog, oid }: ObjectId): string {
  return `${catalog}/${oid}`;
}

function targetOf({ onCatalog, onOid }: CatalogDependency): string {
  return `${onCatalog}/${onOid}`;
}

/** Whether an object is one of the known ones or a part of one. */
export function reachesObject(
  known: ReadonlySet<string>,
  dependencies: readonly CatalogDependency[],
): (key: string) => boolean {
  const find = makeFindObject(known, dependencies);
  return (key) => find(key) !== null;
}

/** Finds the known object that an object is a part of: the table of a row type, the view of its rule, the constraint of its index. */
function makeFindObject(known: ReadonlySet<string>, dependencies: readonly CatalogDependency[]) {
  const wholes = Map.groupBy(
    dependencies.filter(({ kind }) => PART_KINDS.includes(kind)),
    keyOf,
  );
  return function find(key: string, path: readonly string[] = []): string | null {
    if (known.has(key)) return key;
    if (path.includes(key)) return null;
    for (const dependency of wholes.get(key) ?? []) {
      const found = find(targetOf(dependency), [...path, key]);
      if (found !== null) return found;
    }
    return null;
  };
}

type OrderedStatements = { readonly first: ArchivedStatement[]; readonly rest: ArchivedStatement[] };

/**
 * Orders objects so that each comes after those that it depends on: first the wanted ones with what these need, then the
 * others. The order does not depend on the numbers of the objects, which differ in a copy.
 */
export function orderObjects(
  objects: readonly CatalogObject[],
  dependencies: readonly CatalogDependency[],
  isFirst: (object: CatalogObject) => boolean,
): OrderedStatements {
  const byKey = new Map(objects.map((object) => [keyOf(object), object]));
  const needs = neededObjects(byKey, dependencies);
  const sorted = [...objects].sort(compareObjects);
  const done = new Set<CatalogObject>();
  let ordered: ArchivedStatement[] = [];
  const visit = (object: CatalogObject, path: readonly CatalogObject[]) => {
    if (done.has(object)) return;
    if (path.includes(object)) throw new Error(cycleMessage([...path.slice(path.indexOf(object)), object]));
    for (const needed of needs.get(object) ?? []) visit(needed, [...path, object]);
    done.add(object);
    ordered.push({ object: object.object, statement: object.statement });
  };
  for (const object of sorted.filter(isFirst)) visit(object, []);
  const first = ordered;
  ordered = [];
  for (const object of sorted) visit(object, []);
  return { first, rest: ordered };
}

function neededObjects(
  byKey: ReadonlyMap<string, CatalogObject>,
  dependencies: readonly CatalogDependency[],
): ReadonlyMap<CatalogObject, readonly CatalogObject[]> {
  const find = makeFindObject(new Set(byKey.keys()), dependencies);
  const needs = new Map<CatalogObject, Set<CatalogObject>>();
  for (const dependency of dependencies) {
    const [from, to] = [find(keyOf(dependency)), find(targetOf(dependency))];
    if (from === null || to === null || from === to) continue;
    const [object, needed] = [byKey.get(from)!, byKey.get(to)!];
    // A sequence that belongs to a column is created before the table, and then assigned to it.
    if (dependency.kind === "a" && object.object.startsWith("sequence ")) continue;
    needs.set(object, (needs.get(object) ?? new Set()).add(needed));
  }
  return new Map([...needs].map(([object, needed]) => [object, [...needed].sort(compareObjects)]));
}

function compareObjects(one: CatalogObject, other: CatalogObject): number {
  return one.rank - other.rank || (one.object < other.object ? -1 : one.object > other.object ? 1 : 0);
}

function cycleMessage(cycle: readonly CatalogObject[]): string {
  return `A backup cannot contain these objects, because each needs the next one to exist: ${cycle.map(({ object }) => object).join(", ")}. No file was written.`;
}
