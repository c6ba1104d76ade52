import { type DatabaseDescription, type DescribedName, shortName } from "../api/catalog.ts";
import { pathTo } from "../router.ts";

export const OBJECT_KINDS = ["table", "function", "type", "sequence", "extension", "publication"] as const;
export type ObjectKind = (typeof OBJECT_KINDS)[number];

/** An object of the database in the list. */
export type SchemaObject = {
  readonly kind: ObjectKind;
  /** Null if the object is in no schema. */
  readonly schema: string | null;
  readonly name: string;
  /** The kind of a table, or the arguments of a function. */
  readonly detail: string;
  readonly comment: string | null;
  readonly path: string;
  /** True for objects of the service and its tools. */
  readonly internal: boolean;
};

type ObjectFilter = {
  readonly text: string;
  /** The kind of object; null for all. */
  readonly kind: ObjectKind | null;
  readonly internal: boolean;
};

export function pathToTable({ schema, name }: DescribedName): string {
  return pathTo("schema", "table", schema, name);
}

export function pathToFunction({ schema, name, signature }: DescribedName & { readonly signature: string }): string {
  return pathTo("schema", "function", schema, name, signature === "" ? "()" : signature);
}

/** Returns the objects by kind; those of exposed schemas come first. */
export function listObjects(catalog: DatabaseDescription): SchemaObject[] {
  const internal = new Set(catalog.schemas.filter((schema) => schema.internal).map(({ name }) => name));
  const exposed = new Set<string | null>(catalog.schemas.filter((schema) => schema.exposed).map(({ name }) => name));
  const within = (object: DescribedName, rest: Pick<SchemaObject, "kind" | "detail" | "comment" | "path">) => ({
    ...{ schema: object.schema, name: object.name, internal: internal.has(object.schema), ...rest },
  });
  const global = (kind: ObjectKind, name: string, detail: string, comment: string | null): SchemaObject => ({
    ...{ kind, schema: null, name, detail, comment, path: pathTo("schema", kind, name), internal: false },
  });
  const all: SchemaObject[] = [
    ...catalog.tables.map((table) =>
      within(table, { kind: "table", detail: table.kind, comment: table.comment, path: pathToTable(table) }),
    ),
    ...catalog.functions.map((each) =>
      within(each, { kind: "function", detail: each.signature, comment: each.comment, path: pathToFunction(each) }),
    ),
    ...catalog.types.map((type) =>
      within(type, {
        ...{ kind: "type", detail: type.kind, comment: type.comment },
        path: pathTo("schema", "type", type.schema, type.name),
      }),
    ),
    ...catalog.sequences.map((sequence) =>
      within(sequence, {
        ...{ kind: "sequence", comment: sequence.comment },
        detail: sequence.owned_by ? `${shortName(sequence.owned_by)}.${sequence.owned_by.column}` : "",
        path: pathTo("schema", "sequence", sequence.schema, sequence.name),
      }),
    ),
    ...catalog.extensions.map(({ name, version, comment }) => global("extension", name, version, comment)),
    ...catalog.publications.map(({ name, events }) => global("publication", name, events.join(", "), null)),
  ];
  const position = new Map(OBJECT_KINDS.map((kind, index) => [kind, index]));
  const rank = ({ kind, schema }: SchemaObject) => position.get(kind)! * 2 + (exposed.has(schema) ? 0 : 1);
  return all.sort((one, other) => rank(one) - rank(other));
}

/** Returns the objects with each word in the schema, name, detail or comment. Names that begin with the text come first. */
export function filterObjects(
  objects: readonly SchemaObject[],
  { text, kind, internal }: ObjectFilter,
): readonly SchemaObject[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const found = objects.filter((object) => {
    if (kind !== null && object.kind !== kind) return false;
    if (!internal && object.internal) return false;
    const searched = [object.schema, object.name, object.detail, object.comment].join(" ").toLowerCase();
    return words.every((word) => searched.includes(word));
  });
  if (words.length === 0) return found;
  const begins = ({ name }: SchemaObject) => name.toLowerCase().startsWith(words[0]!);
  return [...found.filter(begins), ...found.filter((object) => !begins(object))];
}
