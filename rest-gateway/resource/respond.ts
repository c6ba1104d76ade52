import type { Caller } from "#accounts/identity";
import {
  digestOf,
  type GatewayResponse,
  isMet,
  isReadMethod,
  matchesTag,
  parsePreconditions,
  publicBaseUrl,
} from "#http";
import type { RowCondition, SelectItem } from "#planner/intent";
import { runStepwise, type Stepwise } from "#runtime/concurrency";
import { type JsonRecord, NO_RECORD_LIMITS, parseJsonExactly, readJsonRecords, toAddressText } from "#runtime/json";
import { type Collection, returnsRowOf } from "./collections/collections.ts";
import { preconditionFailed } from "./collections/errors.ts";
import { chooseFreeName } from "./collections/fields.ts";
import type { CollectionReference } from "./collections/relations.ts";
import { entityTag, isModified, isUnmodified, lastModified } from "./conditional-requests.ts";
import { makeReadIntent } from "./intents.ts";
import type { RunRows } from "./operation.ts";
import { formatKey } from "./parse/address.ts";
import { selectEveryField } from "./parse/fields.ts";
import { equalsCondition, isFilteredByEquality, type Paging } from "./parse/parameters.ts";
import type { ResourceRequest } from "./parse/request.ts";

/** The request headers that a response depends on, besides those of credentials. */
const VARY = "Accept, Accept-Profile, Accept-Version, Origin, X-API-Version";

type RowContent = {
  readonly status: 200 | 201;
  /** The row as Postgres printed it. */
  readonly text: string;
  readonly collection: Collection;
  readonly select: readonly SelectItem[];
  /** The row with links; null if none are requested. */
  readonly linked: string | null;
  readonly headers?: Readonly<Record<string, string>>;
};

export function respondWithRow(
  parsed: ResourceRequest,
  { status, text, collection, select, linked, headers }: RowContent,
): GatewayResponse {
  const body = withDeprecation(linked ?? text, parsed);
  // Related rows can change without this one.
  const modified = select.every(isOwnColumn) ? lastModified(text, collection, Date.now()) : null;
  const tag = entityTag(text, body);
  const validators: Record<string, string> = { ETag: tag };
  if (modified) validators["Last-Modified"] = modified.toUTCString();
  if (isReadMethod(parsed.request.method) && isUnchanged(parsed, text, tag, modified)) {
    return { status: 304, headers: validators, body: null };
  }
  return { status, headers: { "Content-Type": parsed.negotiated.contentType, ...validators, ...headers }, body };
}

function isUnchanged(
  { request: { headers } }: ResourceRequest,
  text: string,
  tag: string,
  modified: Date | null,
): boolean {
  const [ifMatch] = headers["if-match"] === undefined ? [] : parsePreconditions(headers);
  if (ifMatch ? !isMet(ifMatch, digestOf(text)) : isModified(headers["if-unmodified-since"], modified)) {
    throw preconditionFailed();
  }
  const etags = headers["if-none-match"];
  // An ETag takes precedence over the date (RFC 9110, 13.2.2).
  return etags === undefined ? isUnmodified(headers["if-modified-since"], modified) : matchesTag(etags, tag);
}

function isOwnColumn({ kind }: SelectItem): boolean {
  return kind === "column";
}

type ListContent = {
  /** A JSON array of rows. */
  readonly data: string;
  readonly total: number | null;
  readonly paging: Paging;
};

export function respondWithList(parsed: ResourceRequest, { data, total, paging }: ListContent): GatewayResponse {
  const { negotiated: agreed, request } = parsed;
  const body = toBody(data, paging, total ?? 0, parsed);
  const headers = { ETag: entityTag(body, body) };
  if (matchesTag(request.headers["if-none-match"], headers.ETag)) return { status: 304, headers, body: null };
  return { status: 200, headers: { "Content-Type": agreed.contentType, ...headers }, body };
}

/** Makes the body by concatenation, because the rows are already JSON. */
function toBody(data: string, paging: Paging, total: number, parsed: ResourceRequest): string {
  switch (paging.kind) {
    case "plain":
      return data;
    case "window": {
      const { skip, limit } = paging;
      return withDeprecation(`{"data":${data},"pagination":${JSON.stringify({ skip, limit, total })}}`, parsed);
    }
    case "page": {
      const { page, limit } = paging;
      const totalPages = pageCount(total, limit);
      const pagination = JSON.stringify({ page, limit, total, totalPages });
      const links = JSON.stringify(pageLinks(page, limit, totalPages, parsed));
      return withDeprecation(`{"data":${data},"pagination":${pagination},"links":${links}}`, parsed);
    }
    case "slice": {
      const { page, size } = paging;
      const totalPages = pageCount(total, size);
      const rest = { page, size, totalElements: total, totalPages, first: page === 0, last: page >= totalPages - 1 };
      return withDeprecation(`{"content":${data},${JSON.stringify(rest).slice(1)}`, parsed);
    }
  }
}

function pageCount(total: number, size: number): number {
  return size === 0 ? 0 : Math.ceil(total / size);
}

function pageLinks(
  page: number,
  limit: number,
  totalPages: number,
  { address, parameters, settings }: ResourceRequest,
) {
  const base = publicBaseUrl(settings.publicUrl);
  const linkTo = (number: number) => {
    const query = new URLSearchParams(parameters);
    // Links are shared and logged, so they must not contain keys.
    query.delete("api_key");
    query.set("page", String(number));
    query.set("limit", String(limit));
    return `${base}${address.canonical}?${query}`;
  };
  return {
    first: linkTo(1),
    prev: page > 1 ? linkTo(Math.max(1, Math.min(page - 1, totalPages))) : null,
    next: page < totalPages ? linkTo(page + 1) : null,
    last: linkTo(Math.max(1, totalPages)),
  };
}

/**
 * Returns the headers of every response, including errors and redirects, which caches store by default. `caller` is null until the
 * credential is verified.
 */
export function cacheHeaders(caller: Caller | null): Record<string, string> {
  return { "Cache-Control": caller?.kind === "anonymous" ? "no-cache" : "private, no-cache", Vary: VARY };
}

function withDeprecation(object: string, { notice }: Pick<ResourceRequest, "notice">): string {
  if (!notice) return object;
  const comma = object === "{}" ? "" : ",";
  return `${object.slice(0, -1)}${comma}"deprecation":${JSON.stringify(notice.body)}}`;
}

const NO_KEYS: ReadonlySet<string> = new Set();

type LinkedRow = Readonly<Record<string, unknown>>;
type ResourceLink = { readonly href: string; readonly method?: string };

/** Adds `_links` to the rows of a JSON array or to a single row: related paths, and the changes that the caller may make. */
export async function withLinks(
  text: string,
  collection: Collection,
  parsed: ResourceRequest,
  run: RunRows,
): Promise<string> {
  const { signal } = parsed.request;
  const found = await runStepwise(readJsonRecords(Buffer.from(text), NO_RECORD_LIMITS), signal);
  if (found.kind !== "object" && found.kind !== "list") throw new TypeError("Rows are JSON objects");
  const rows = await runStepwise(readRows(found.records, collection), signal);
  const permitted = await findPermitted(rows, collection, run);
  const linked = await runStepwise(writeRows(found.records, rows, { collection, parsed, permitted }), signal);
  return found.kind === "list" ? `[${linked.join(",")}]` : linked[0]!;
}

/** Reads only the values that links need; all else stays as Postgres printed it. */
function* readRows(records: readonly JsonRecord[], { key, references }: Collection): Stepwise<readonly LinkedRow[]> {
  const fields = [...key, ...references.flatMap((reference) => reference.fields)];
  const names = [...new Set(fields.map(({ name }) => name))];
  const rows: LinkedRow[] = [];
  for (const record of records) {
    const members = record.members();
    const selected = names.filter((name) => members.has(name));
    rows.push(Object.fromEntries(selected.map((name) => [name, members.get(name)!.value])));
    yield;
  }
  return rows;
}

function* writeRows(
  records: readonly JsonRecord[],
  rows: readonly LinkedRow[],
  context: LinkContext,
): Stepwise<readonly string[]> {
  const linked: string[] = [];
  for (const [index, { text }] of records.entries()) {
    const links = `"_links":${JSON.stringify(linksOf(rows[index]!, context))}}`;
    const members = text.slice(0, -1);
    linked.push(members.trimEnd() === "{" ? `{${links}` : `${members},${links}`);
    yield;
  }
  return linked;
}

/** Returns the path of a row, `/users/7`; null if the row lacks a part of its key. */
function rowAddress(row: LinkedRow, collection: Collection, parsed: ResourceRequest): string | null {
  const values = collection.key.map(({ name }) => row[name]);
  if (values.includes(undefined)) return null;
  return rowAddressByKey(values, collection, parsed);
}

/** Returns the path of a key; null if the key would be empty. */
function rowAddressByKey(key: readonly unknown[], collection: Collection, parsed: ResourceRequest): string | null {
  const text = formatKey(key.map(toAddressText));
  return text === null ? null : `${collectionAddress(collection, parsed)}/${text}`;
}

type LinkContext = {
  readonly collection: Collection;
  readonly parsed: ResourceRequest;
  readonly permitted: PermittedRows;
};

function linksOf(
  row: LinkedRow,
  { collection, parsed, permitted }: LinkContext,
): Readonly<Record<string, ResourceLink>> {
  const { collections, settings } = parsed;
  const base = publicBaseUrl(settings.publicUrl);
  const links = new Map<string, ResourceLink>();
  /** Adds a link, with a number after the name if that is taken. */
  const add = (name: string, link: ResourceLink) => {
    const isTaken = (each: string) => links.has(each) || ROW_LINKS.has(each);
    links.set(
      chooseFreeName([name], isTaken, (first, number) => `${first}-${number}`),
      link,
    );
  };
  for (const reference of collection.references) {
    const target = collections.find(reference.target);
    const address = target?.privileges.read ? referenceAddress(row, reference, target, parsed) : null;
    if (address !== null) add(reference.name, { href: `${base}${address}` });
  }
  const own = rowAddress(row, collection, parsed);
  if (own === null) return Object.fromEntries(links);
  const href = `${base}${own}`;
  links.set("self", { href });
  for (const { name, target } of collection.nested) {
    if (collections.find(target)?.privileges.read) add(name, { href: `${href}/${encodeURIComponent(name)}` });
  }
  const key = formatKey(collection.key.map(({ name }) => toAddressText(row[name])))!;
  if (permitted.update.has(key)) links.set("update", { href, method: "PUT" });
  if (permitted.delete.has(key)) links.set("delete", { href, method: "DELETE" });
  for (const { name, routine } of collection.actions) {
    // An action that returns the row counts as an update. Standard links take precedence over actions.
    if (returnsRowOf(collection, routine) && !permitted.update.has(key)) continue;
    if (!links.has(name)) links.set(name, { href: `${href}/${encodeURIComponent(name)}`, method: "POST" });
  }
  return Object.fromEntries(links);
}

const ROW_LINKS: ReadonlySet<string> = new Set(["self", "update", "delete"]);

/** Returns the path of the referenced row, or the query that finds it by a unique key. */
function referenceAddress(
  row: LinkedRow,
  { fields, relationship }: CollectionReference,
  target: Collection,
  parsed: ResourceRequest,
): string | null {
  const values = new Map(relationship.columns.map(({ target }, index) => [target, row[fields[index]!.name]] as const));
  if ([...values.values()].some((value) => value === undefined || value === null)) return null;
  const isItsKey = target.key.length === values.size && target.key.every(({ column }) => values.has(column.name));
  if (isItsKey) {
    const key = target.key.map(({ column }) => values.get(column.name));
    return rowAddressByKey(key, target, parsed);
  }
  const query = new URLSearchParams();
  for (const [column, value] of values) {
    const field = target.fields.find((each) => each.column.name === column);
    if (!field || !isFilteredByEquality(field, target)) return null;
    query.set(field.name, toAddressText(value));
  }
  return `${collectionAddress(target, parsed)}?${query}`;
}

/** Returns the path of a collection. Links keep the prefix of the request if the collection is served there. */
function collectionAddress({ name }: Collection, { address, collections }: ResourceRequest): string {
  const isHere = address.base !== "" || collections.findAtRoot(name) !== undefined;
  return `${isHere ? address.base : `/api/v${collections.version}`}/${encodeURIComponent(name)}`;
}

/** The keys of the rows that the caller may change, as path segments. */
type PermittedRows = { readonly update: ReadonlySet<string>; readonly delete: ReadonlySet<string> };

/** Finds the permitted rows by the policies; skipped if the role has no privilege at all. */
async function findPermitted(rows: readonly LinkedRow[], collection: Collection, run: RunRows): Promise<PermittedRows> {
  const { key, privileges } = collection;
  const keys = rows.map((row) => key.map(({ name }) => row[name])).filter((values) => !values.includes(undefined));
  const find = async (command: "update" | "delete"): Promise<ReadonlySet<string>> => {
    if (!privileges[command] || key.length === 0 || keys.length === 0) return NO_KEYS;
    const select = selectEveryField(collection).filter(
      (item) => item.kind === "column" && key.some(({ column }) => column.name === item.field?.name),
    );
    const conditions = [anyKeyCondition(keys, collection), permittedCondition(command)];
    const { text } = await run(makeReadIntent(collection, { select, conditions }));
    const found = parseJsonExactly(text) as readonly LinkedRow[];
    return new Set(found.flatMap((row) => formatKey(key.map(({ name }) => toAddressText(row[name]))) ?? []));
  };
  return { update: await find("update"), delete: await find("delete") };
}

function anyKeyCondition(keys: readonly (readonly unknown[])[], { key }: Collection): RowCondition {
  const [only, ...others] = key;
  if (others.length === 0) {
    const operation = { kind: "in", values: keys.map(([value]) => toAddressText(value)) } as const;
    return { kind: "filter", field: { name: only!.column.name, path: [] }, negated: false, operation };
  }
  const conditions = keys.map((values): RowCondition => {
    const parts = key.map(({ column }, index) => equalsCondition(column.name, toAddressText(values[index])));
    return { kind: "and", negated: false, conditions: parts };
  });
  return { kind: "or", negated: false, conditions };
}

function permittedCondition(command: "update" | "delete"): RowCondition {
  return { kind: "row", negated: false, operation: { kind: "permitted", command } };
}
