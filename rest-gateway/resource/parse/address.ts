import { type Catalog, exposedSchemas } from "#catalog";
import { decodeSchemaName, type GatewayRequest, HttpError, profileHeader } from "#http";
import { type Collection, type Collections, type RowAction, tableAddresses } from "../collections/collections.ts";
import { invalidIdError, rowNotFound } from "../collections/errors.ts";
import { type CollectionField, toAddressName } from "../collections/fields.ts";
import type { NestedCollection } from "../collections/relations.ts";
import { characterFault, isOutOfRange, textFault } from "./values.ts";

const MAX_LEVELS = 3;

/** The path of batches, unless a table has this name. */
export const BATCH_COLLECTION = "batch";

/** The parts of a path, before collections are looked up. */
export type ResourceAddress = {
  /** The version as it is written, `2` of `/api/v2/…`; null if the path names none. */
  readonly version: string | null;
  /** The prefix before the first collection: `/api/v2`, `/api`, or nothing at the root. */
  readonly base: string;
  /** Alternating names of collections or actions, and keys, which are still percent-encoded. */
  readonly segments: readonly string[];
  /** The path in canonical spelling. */
  readonly canonical: string;
};

/** A path in which every segment is canonical, whether or not it exists. */
const CANONICAL_PATH = /^(?:\/[a-z0-9]+)+$/;
const API_PREFIX = /^\/api(?:\/v(?<version>\d+))?(?=\/)/i;

export function parseAddress(path: string): ResourceAddress {
  const found = API_PREFIX.exec(path);
  const base = found?.[0].toLowerCase() ?? "";
  const version = found?.groups?.version ?? null;
  const segments = path.slice(base.length + 1).split("/");
  if (CANONICAL_PATH.test(path)) return { version, base, segments, canonical: path };
  if (segments.length > 1 && segments.at(-1) === "") segments.pop();
  // Keys keep their case; only names of collections and actions have a canonical spelling.
  const spelled = segments.map((segment, index) => (isName(index) ? spellName(segment) : segment));
  return { version, base, segments: spelled, canonical: joinPath(base, spelled) };
}

/** Returns the same path for the collection of that name. */
function withCollectionName({ version, base, segments }: ResourceAddress, name: string): ResourceAddress {
  const renamed = segments.with(0, name);
  return { version, base, segments: renamed, canonical: joinPath(base, renamed) };
}

function joinPath(base: string, segments: readonly string[]): string {
  const encoded = segments.map((segment, index) => (isName(index) ? encodeURIComponent(segment) : segment));
  return [base, ...encoded].join("/");
}

function isName(index: number): boolean {
  return index % 2 === 0;
}

const CANONICAL_NAME = /^[a-z0-9]+$/;

function spellName(segment: string): string {
  return CANONICAL_NAME.test(segment) ? segment : toAddressName(decodeName(segment));
}

/** Decodes a segment. One that cannot be decoded names nothing. */
function decodeName(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

/** A row in the path before the target. */
export type PathStep = {
  readonly collection: Collection;
  readonly key: readonly string[];
  readonly nested: NestedCollection | null;
};

/** The collection, row or action that a path names. */
export type ResourceTarget = {
  readonly collection: Collection;
  /** The key; null for the collection itself. */
  readonly key: readonly string[] | null;
  /** The action; null for the row itself. */
  readonly action: RowAction | null;
  /** The rows that the target is nested in, outermost first. */
  readonly parents: readonly PathStep[];
  /** The relation to the last parent. */
  readonly nested: NestedCollection | null;
};

/** Returns the path without keys, `/api/v1/items/{key}/tags`. */
export function toPathTemplate({ base, segments }: ResourceAddress): string {
  return `${base}/${segments.map((name, index) => (index % 2 === 0 ? name : "{key}")).join("/")}`;
}

/** Finds the target; null if the path names nothing. */
export function findTarget({ base, segments }: ResourceAddress, collections: Collections): ResourceTarget | null {
  const parents: PathStep[] = [];
  const [first = ""] = segments;
  let collection = base === "" ? collections.findAtRoot(first) : collections.find(first);
  let nested: NestedCollection | null = null;
  for (let at = 0; collection; at += 2) {
    const segment = segments[at + 1];
    if (segment === undefined) return { collection, key: null, action: null, parents, nested };
    if (collection.key.length === 0) return null;
    const key = parseKey(segment, collection, collections.version);
    const next = segments[at + 2];
    if (next === undefined) return { collection, key, action: null, parents, nested };
    const inner = parents.length + 1 < MAX_LEVELS ? collection.nested.find(({ name }) => name === next) : undefined;
    if (!inner) {
      const action = segments.length === at + 3 ? collection.actions.find(({ name }) => name === next) : undefined;
      return action ? { collection, key, action, parents, nested } : null;
    }
    parents.push({ collection, key, nested });
    nested = inner;
    collection = collections.find(inner.target);
  }
  return null;
}

/** Parses `7`, or `7,de` for a key of two columns; a comma inside a value is `%2C`. */
function parseKey(segment: string, collection: Collection, version: number): readonly string[] {
  const { key } = collection;
  const parts = key.length === 1 ? [segment] : segment.split(",");
  if (parts.length !== key.length) {
    throw invalidIdError(version, `The key is ${key.map(({ name }) => name).join(",")}.`);
  }
  const values = parts.map((part) => decodeKeyPart(part, version));
  key.forEach(({ name, column, isReadByFunction }, index) => {
    const text = values[index]!;
    const fault = isReadByFunction.text ? characterFault(text) : textFault(column.type, text);
    if (fault) throw invalidIdError(version, `${name} ${fault}.`);
  });
  const isImpossible = ({ column, isReadByFunction }: CollectionField, index: number) =>
    !isReadByFunction.text && isOutOfRange(column.type, values[index]!);
  if (key.some(isImpossible)) throw rowNotFound(collection);
  return values;
}

/** Returns the key as a path segment; null if it would be empty, since that is the path of the collection. */
export function formatKey(values: readonly string[]): string | null {
  return values.map(encodeURIComponent).join(",") || null;
}

function decodeKeyPart(part: string, version: number): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw invalidIdError(version, "It is not percent-encoded correctly.");
  }
}

/**
 * Resolves a schema header: returns the path that names the same table without it. Null if the schema has no such
 * table. Names at the root are unique in all schemas.
 */
export function resolveProfile(
  address: ResourceAddress,
  { method, headers }: Pick<GatewayRequest, "method" | "headers">,
  catalog: Catalog,
): ResourceAddress | null {
  const header = profileHeader(method, headers);
  if (header === undefined || address.base === "") return address;
  const schemas = exposedSchemas(catalog).map(({ name }) => name);
  const schema = decodeSchemaName(header, schemas);
  if (!schemas.includes(schema)) throw schemaNotServed(schema, schemas);
  const { addresses, findIn } = tableAddresses(catalog);
  const table = findIn(schema, address.segments[0]!);
  return table ? withCollectionName(address, addresses.get(table)!) : null;
}

function schemaNotServed(schema: string, schemas: readonly string[]): HttpError {
  const message = `The schema ${JSON.stringify(schema)} is not served. Served schemas: ${schemas.join(", ")}.`;
  return new HttpError(406, "NOT_ACCEPTABLE", message);
}
