import type { SelectedColumn, SelectItem } from "#planner/intent";
import { memoizePerObject } from "#runtime";
import { type Collection, type Collections, visibleNames } from "../collections/collections.ts";
import { suggestName, validationError } from "../collections/errors.ts";
import type { CollectionField } from "../collections/fields.ts";
import { relatedTo } from "../collections/relations.ts";
import type { SearchResults } from "./search.ts";

/** The selected fields of a collection and of its related collections. */
type FieldNode = { all: boolean; readonly fields: Set<CollectionField>; readonly related: Map<string, FieldNode> };

const MAX_DEPTH = 3;
const emptyNode = (): FieldNode => ({ all: false, fields: new Set(), related: new Map() });

/** Returns all fields that the role may read. */
export const selectEveryField = memoizePerObject(({ fields }: Collection): readonly SelectItem[] => {
  return fields.filter(({ readable }) => readable).map(toColumn);
});

/**
 * Parses `title,author.name`: the part before the dot names a reference or a nested collection. The results of a search
 * are fields too.
 */
export function parseFields(text: string, { collection, collections, results }: FieldsContext): readonly SelectItem[] {
  const root = emptyNode();
  const paths = new Set(text.split(","));
  const computed = [...paths].flatMap((path): SelectItem[] => {
    const field = results?.get(path);
    return field ? [{ kind: "column", field, alias: path, cast: null, aggregate: null }] : [];
  });
  for (const path of paths) {
    if (!results?.has(path)) addFieldPath(root, path.split("."), { path, collection, collections });
  }
  return [...toSelectItems(root, collection, collections), ...computed];
}

export type FieldsContext = {
  readonly collection: Collection;
  readonly collections: Collections;
  readonly results?: SearchResults | undefined;
};

type FieldPathContext = { readonly path: string; readonly collection: Collection; readonly collections: Collections };

function addFieldPath(node: FieldNode, [name = "", ...rest]: readonly string[], context: FieldPathContext): void {
  const { path, collection, collections } = context;
  // A field name may contain dots.
  const wanted = [name, ...rest].join(".");
  const field = collection.fields.find((each) => each.readable && each.name === wanted);
  if (field) {
    node.fields.add(field);
    return;
  }
  const target = collections.find(relatedTo(collection, name)?.target ?? "");
  if (!target || path.split(".").length > MAX_DEPTH) {
    const names = visibleNames(collection, collections);
    throw validationError([
      { field: "fields", message: `Unknown field ${JSON.stringify(path)}.${suggestName(name, names)}` },
    ]);
  }
  const further = node.related.get(name) ?? emptyNode();
  node.related.set(name, further);
  if (rest.length === 0) further.all = true;
  else addFieldPath(further, rest, { ...context, collection: target });
}

function toSelectItems(
  { all, fields, related }: FieldNode,
  collection: Collection,
  collections: Collections,
): SelectItem[] {
  const twice = [...fields].find(({ name }) => related.has(name));
  if (twice) throw validationError([{ field: "fields", message: ambiguousSelection(twice) }]);
  const columns = all ? selectEveryField(collection) : [...fields].map(toColumn);
  const relations = [...related].map(([name, node]): SelectItem => {
    const { target, relationship } = relatedTo(collection, name)!;
    return {
      kind: "relation",
      name,
      relationship,
      alias: null,
      hint: null,
      join: null,
      spread: false,
      select: toSelectItems(node, collections.find(target)!, collections),
    };
  });
  return [...columns, ...relations];
}

function ambiguousSelection({ name }: CollectionField): string {
  const quoted = JSON.stringify(name);
  return `${quoted} is selected as a value and as a related row: remove one of them.`;
}

function toColumn({ name, column }: CollectionField): SelectedColumn {
  const alias = name === column.name ? null : name;
  return { kind: "column", field: { name: column.name, path: [] }, alias, cast: null, aggregate: null };
}
