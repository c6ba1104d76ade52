import { exposedSchemas } from "../../../engine/catalog/exposed-schemas.ts";
import { readComment } from "../comment.ts";
import { RESERVED } from "../reserved-names.ts";
import type { Subject } from "../subject.ts";
import type { VisibleTable } from "../viewer.ts";
import { componentKey, type Reference, referTo } from "./component-key.ts";

const FILTER = referTo("schemas", "rest.filter");
const WHOLE_NUMBER = { type: "integer", minimum: 0 };

const PREFERENCES = {
  count: ["count=exact", "count=planned", "count=estimated"],
  returned: ["return=minimal", "return=headers-only", "return=representation"],
  resolution: ["resolution=merge-duplicates", "resolution=ignore-duplicates"],
  missing: ["missing=default", "missing=null"],
  handling: ["handling=strict", "handling=lenient"],
  end: ["tx=commit", "tx=rollback"],
};
const { count, returned, resolution, missing, handling, end } = PREFERENCES;
const TIMEZONE = "^timezone=.+$";
const MAX_AFFECTED = "^max-affected=\\d+$";

const SHARED = {
  select: query("select", "Columns and relations: `id,name:title,price::text,author(name)`"),
  order: query("order", "`created_at.desc.nullslast,id`"),
  limit: { ...query("limit", "At most so many rows"), schema: WHOLE_NUMBER },
  offset: { ...query("offset", "Leave out so many rows at the start"), schema: WHOLE_NUMBER },
  cursor: {
    ...query("cursor", "The page behind the one whose `Link` this is from; empty for the first page. It needs a limit"),
    allowEmptyValue: true,
  },
  and: query("and", "Conditions that must all hold: `(age.gt.18,or(name.eq.Ann,name.is.null))`"),
  or: query("or", "Conditions of which one must hold: `(age.lt.18,age.gt.65)`"),
  columns: query("columns", "The columns to write; others in the body are passed over"),
  on_conflict: query("on_conflict", "The columns of the unique key by which a row is taken to exist already"),
  range: header("Range", "The first and last row, from 0: `0-24`"),
  rangeUnit: { ...header("Range-Unit", "What Range counts"), schema: { type: "string", default: "items" } },
  idempotencyKey: {
    ...header(
      "Idempotency-Key",
      "A name of your own for the change: sent again under it, the change is not made again",
    ),
    schema: { type: "string", minLength: 1, maxLength: 255 },
  },
  preferRead: prefer([...count, ...handling], [TIMEZONE]),
  preferInsert: prefer([...returned, ...resolution, ...missing, ...count, ...handling, ...end], [TIMEZONE]),
  preferUpdate: prefer([...returned, ...missing, ...count, ...handling, ...end], [TIMEZONE, MAX_AFFECTED]),
  preferDelete: prefer([...returned, ...count, ...handling, ...end], [TIMEZONE, MAX_AFFECTED]),
  preferCall: prefer([...count, ...handling, ...end], [TIMEZONE, MAX_AFFECTED]),
};

export type SharedParameter = keyof typeof SHARED;

export function* sharedParameters({ schema }: Pick<Subject, "schema">): Generator<[string, object]> {
  yield* Object.entries(SHARED);
  for (const name of ["Accept-Profile", "Content-Profile"]) {
    const parameter = header(name, "The schema that the address is about");
    yield [profileKey(name), { ...parameter, required: true, schema: { type: "string", const: schema } }];
  }
}

export function* rowFilters({ table, selectable }: VisibleTable): Generator<[string, object]> {
  for (const { name, comment } of selectable) {
    if (RESERVED.has(name)) continue;
    const description = readComment(comment).text;
    yield [rowFilterKey(table.name, name), { name, in: "query", description, schema: FILTER }];
  }
}

export function referToShared(...names: readonly SharedParameter[]): Reference[] {
  return names.map((name) => referTo("parameters", name));
}

export function referToRowFilters(table: string, columns: readonly { readonly name: string }[]): Reference[] {
  return columns
    .filter(({ name }) => !RESERVED.has(name))
    .map(({ name }) => referTo("parameters", rowFilterKey(table, name)));
}

/** Where a name that the interface uses is somebody's own, it means that one. */
export function referToCursor(names: Iterable<string>): Reference[] {
  return new Set(names).has("cursor") ? [] : referToShared("cursor");
}

/** Which schema is meant: not asked of the clients of the default one. */
export function referToProfile(
  { catalog, schema }: Pick<Subject, "catalog" | "schema">,
  name: "Accept-Profile" | "Content-Profile",
): Reference[] {
  const [first] = exposedSchemas(catalog);
  return first?.name === schema ? [] : [referTo("parameters", profileKey(name))];
}

function profileKey(name: string): string {
  return name === "Accept-Profile" ? "acceptProfile" : "contentProfile";
}

function rowFilterKey(table: string, column: string): string {
  return `rowFilter.${componentKey(table)}.${componentKey(column)}`;
}

function query(name: string, description: string) {
  return { name, in: "query", description, schema: { type: "string" } };
}

function header(name: string, description: string) {
  return { name, in: "header", description, schema: { type: "string" } };
}

function prefer(words: readonly string[], patterns: readonly string[]) {
  const anyOf = [{ enum: words }, ...patterns.map((pattern) => ({ pattern }))];
  return {
    ...header("Prefer", "Preferences, separated by commas"),
    schema: { type: "array", items: { type: "string", anyOf } },
  };
}
