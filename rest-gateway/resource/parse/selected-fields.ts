import { oncePer } from "../../../engine/once-per.ts";
import type { SelectedColumn, SelectItem } from "../../statement/intent.ts";
import type { Collection, Collections } from "../collections.ts";
import type { Field } from "../fields.ts";
import { invalid } from "../refusals.ts";
import { nearMiss } from "./near-miss.ts";

/** What is asked of one collection, and of those that are related to it. */
type Branch = { all: boolean; readonly fields: Set<Field>; readonly related: Map<string, Branch> };

const DEEPEST = 3;
const NOTHING = (): Branch => ({ all: false, fields: new Set(), related: new Map() });

/** All that the role may read. */
export const everyField = oncePer(({ fields }: Collection): readonly SelectItem[] => {
  return fields.filter(({ readable }) => readable).map(toColumn);
});

/** `title,author.name`: the dotted part is a field of what the row refers to, or of what refers to it. */
export function parseFields(text: string, collection: Collection, collections: Collections): readonly SelectItem[] {
  const root = NOTHING();
  for (const path of text.split(",")) grow(root, path.split("."), { path, collection, collections });
  return toItems(root, collection, collections);
}

type Place = { readonly path: string; readonly collection: Collection; readonly collections: Collections };

function grow(branch: Branch, [name = "", ...rest]: readonly string[], place: Place): void {
  const { path, collection, collections } = place;
  const readable = collection.fields.filter((field) => field.readable);
  // A column may have dots in its name.
  const wanted = [name, ...rest].join(".");
  const field = readable.find((each) => each.name === wanted);
  if (field) {
    branch.fields.add(field);
    return;
  }
  const target = collections.find(relatedTo(collection, name)?.target ?? "");
  if (!target || path.split(".").length > DEEPEST) {
    const known = [...readable, ...collection.references, ...collection.nested].map((each) => each.name);
    throw invalid([{ field: "fields", message: `There is no field ${JSON.stringify(path)}.${nearMiss(name, known)}` }]);
  }
  const further = branch.related.get(name) ?? NOTHING();
  branch.related.set(name, further);
  if (rest.length === 0) further.all = true;
  else grow(further, rest, { ...place, collection: target });
}

function relatedTo({ references, nested }: Collection, name: string) {
  return references.find((reference) => reference.name === name) ?? nested.find((each) => each.name === name);
}

function toItems({ all, fields, related }: Branch, collection: Collection, collections: Collections): SelectItem[] {
  const twice = [...fields].find(({ name }) => related.has(name));
  if (twice) throw invalid([{ field: "fields", message: bothWays(twice) }]);
  const columns = all ? everyField(collection) : [...fields].map(toColumn);
  const relations = [...related].map(([name, branch]): SelectItem => {
    const { target, relationship } = relatedTo(collection, name)!;
    return {
      kind: "relation",
      name,
      found: relationship,
      alias: null,
      hint: null,
      join: null,
      spread: false,
      select: toItems(branch, collections.find(target)!, collections),
    };
  });
  return [...columns, ...relations];
}

function bothWays({ name }: Field): string {
  const quoted = JSON.stringify(name);
  return `${quoted} is asked for as a value and as the row that it refers to: leave one of them out.`;
}

function toColumn({ name, column }: Field): SelectedColumn {
  const alias = name === column.name ? null : name;
  return { kind: "column", field: { name: column.name, path: [] }, alias, cast: null, aggregate: null };
}
