import type { Catalog, CatalogTable, ColumnPair, ComputedRelationship, DirectRelationship } from "#catalog";
import { type CollectionField, chooseFreeName, type FieldNaming, toAddressName } from "./fields.ts";

/** A foreign key to a row of another collection. */
export type CollectionReference = {
  /** The name, such as `author` for the column `author_id`. */
  readonly name: string;
  /** The fields in the order of the key's columns. */
  readonly fields: readonly CollectionField[];
  /** The name of the target collection, which may be invisible to the role. */
  readonly target: string;
  readonly relationship: DirectRelationship;
};

/** A collection with a foreign key to this one. */
export type NestedCollection = {
  readonly name: string;
  readonly target: string;
  readonly relationship: DirectRelationship;
};

type RelatedCollections = {
  readonly references: readonly CollectionReference[];
  readonly nested: readonly NestedCollection[];
};

/** Returns the reference or the nested collection of this name. */
export function relatedTo({ references, nested }: RelatedCollections, name: string): RelatedCollection | undefined {
  return references.find((reference) => reference.name === name) ?? nested.find((each) => each.name === name);
}

type RelatedCollection = CollectionReference | NestedCollection;

type RelationContext = { readonly catalog: Catalog; readonly addresses: ReadonlyMap<CatalogTable, string> };
type UnnamedReference = Omit<CollectionReference, "name"> & { readonly candidates: readonly [string, ...string[]] };

/**
 * Returns the references. A foreign key of one column has the column's name without suffix, or the column's name if that is taken;
 * a column with exactly that name comes first. A foreign key of several columns has the name of the table that it refers to.
 */
export function referencesOf(
  table: CatalogTable,
  fields: readonly CollectionField[],
  { catalog, addresses }: RelationContext,
  nameOf: FieldNaming,
): CollectionReference[] {
  const readable = new Map(fields.filter((field) => field.readable).map((field) => [field.column.name, field]));
  const found = withoutDuplicates(catalog.referencesFrom(table)).flatMap((relationship): UnnamedReference[] => {
    const target = catalog.findTable(relationship.target);
    const address = target && addresses.get(target);
    const own = relationship.columns.flatMap(({ source }) => readable.get(source) ?? []);
    if (address === undefined || target!.kind.endsWith("view") || own.length < relationship.columns.length) return [];
    return [{ fields: own, target: address, relationship, candidates: namesOfReference(relationship, nameOf) }];
  });
  const rankOf = ({ fields: [first, ...others], candidates }: UnnamedReference) =>
    others.length > 0 ? 2 : first!.name === candidates[0] ? 0 : 1;
  const taken = new Set<string>();
  const ofSeveralColumns = new Set(fields.map(({ name }) => name));
  return found
    .sort((one, other) => rankOf(one) - rankOf(other))
    .map(({ candidates, ...reference }) => {
      const isTaken = (name: string) => taken.has(name) || (reference.fields.length > 1 && ofSeveralColumns.has(name));
      const name = chooseFreeName(candidates, isTaken, (first, number) => `${first}_${number}`);
      taken.add(name);
      return { name, ...reference };
    });
}

function namesOfReference(
  { source, target, columns }: DirectRelationship,
  nameOf: FieldNaming,
): UnnamedReference["candidates"] {
  const [pair, ...others] = columns;
  if (others.length === 0) return [nameOf(withoutSuffix(pair!)), nameOf(pair!.source)];
  const byColumns = nameOf(`${target.name}_by_${columns.map((each) => each.source).join("_and_")}`);
  const isSelf = source.schema === target.schema && source.name === target.name;
  // The nested collection of the same table has the plain name.
  return isSelf ? [byColumns] : [nameOf(target.name), byColumns];
}

/** Removes the suffix: `author_id` gives `author`; `country_code` gives `country` if it refers to the column `code`. */
function withoutSuffix({ source, target }: ColumnPair): string {
  const suffix = ["_id", `_${target}`].find((ending) => source.endsWith(ending) && source.length > ending.length);
  return suffix ? source.slice(0, -suffix.length) : source;
}

/** Returns the nested collections. The first foreign key of a table gives the plain name; names of further ones include their columns. */
export function nestedOf(table: CatalogTable, { catalog, addresses }: RelationContext): NestedCollection[] {
  const pointing = withoutDuplicates(catalog.relationshipsOf(table).filter(isInbound))
    .map((relationship) => ({ relationship, target: catalog.findTable(relationship.target)! }))
    .sort((a, b) => positionOf(a) - positionOf(b));
  const found = new Map<string, NestedCollection>();
  for (const { relationship, target } of pointing) {
    const address = addresses.get(target);
    if (address === undefined) continue;
    const numbered = (name: string, number: number) => `${name}-${number}`;
    const name = chooseFreeName(namesOfNested(relationship, address), (each) => found.has(each), numbered);
    found.set(name, { name, target: address, relationship });
  }
  return [...found.values()];
}

function namesOfNested({ columns }: DirectRelationship, address: string): [string, ...string[]] {
  const [pair] = columns;
  const short = withoutSuffix({ source: pair!.target, target: pair!.source });
  const whole = columns.map(({ target }) => target).join("-and-");
  return [address, `${address}-by-${toAddressName(short)}`, `${address}-by-${toAddressName(whole)}`];
}

function isInbound(relationship: DirectRelationship | ComputedRelationship): relationship is DirectRelationship {
  return relationship.kind !== "computed" && relationship.keyAt === "target";
}

type InboundRelationship = { readonly relationship: DirectRelationship; readonly target: CatalogTable };

function positionOf({ relationship, target }: InboundRelationship): number {
  return target.columns.get(relationship.columns[0]!.target)!.position;
}

/** Drops foreign keys over the same columns. */
function withoutDuplicates(relationships: readonly DirectRelationship[]): DirectRelationship[] {
  const byColumns = new Map<string, DirectRelationship>();
  for (const relationship of relationships) {
    const { target, columns } = relationship;
    const pairs = columns.map((pair) => JSON.stringify([pair.source, pair.target])).sort();
    const key = JSON.stringify([target.schema, target.name, ...pairs]);
    if (!byColumns.has(key)) byColumns.set(key, relationship);
  }
  return [...byColumns.values()];
}
