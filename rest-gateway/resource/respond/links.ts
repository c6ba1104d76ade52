import { runStepwise, type Stepwise } from "../../../engine/concurrency/stepwise.ts";
import { type JsonRecord, NO_RECORD_LIMITS, readJsonRecords } from "../../../engine/json/json-records.ts";
import { parseJsonExactly, toAddressText } from "../../../engine/json/json-values.ts";
import type { RowCondition } from "../../../engine/statement/intent.ts";
import { publicBaseUrl } from "../../http/paths.ts";
import { type Collection, returnsRowOf } from "../collections.ts";
import { chooseFreeName } from "../fields.ts";
import { equalsCondition, makeReadIntent } from "../intents.ts";
import { formatKey } from "../parse/address.ts";
import { selectEveryField } from "../parse/fields.ts";
import { isFilteredByEquality } from "../parse/parameters.ts";
import type { CollectionReference } from "../relations.ts";
import type { ResourceRequest, RunRows } from "../request.ts";

const NO_KEYS: ReadonlySet<string> = new Set();

type LinkedRow = Readonly<Record<string, unknown>>;
type ResourceLink = { readonly href: string; readonly method?: string };

/** Adds `_links` to the rows of a JSON array or to a single row: related paths, and what the caller may do. */
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

/** Reads only the values that links need; all else stays as Postgres wrote it. */
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

/** `/users/7`; null if the row does not have its whole key. */
function rowAddress(row: LinkedRow, collection: Collection, parsed: ResourceRequest): string | null {
  const values = collection.key.map(({ name }) => row[name]);
  if (values.includes(undefined)) return null;
  return rowAddressByKey(values, collection, parsed);
}

/** Null if the key would be empty. */
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
  /** Adds a number to the name if it is taken. */
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
    if (collections.find(target)?.privileges.read) add(name, { href: `${href}/${name}` });
  }
  const key = formatKey(collection.key.map(({ name }) => toAddressText(row[name])))!;
  if (permitted.update.has(key)) links.set("update", { href, method: "PUT" });
  if (permitted.delete.has(key)) links.set("delete", { href, method: "DELETE" });
  for (const { name, routine } of collection.actions) {
    // An action that returns the row counts as an update. Standard links take precedence over actions.
    if (returnsRowOf(collection, routine) && !permitted.update.has(key)) continue;
    if (!links.has(name)) links.set(name, { href: `${href}/${name}`, method: "POST" });
  }
  return Object.fromEntries(links);
}

const ROW_LINKS: ReadonlySet<string> = new Set(["self", "update", "delete"]);

/** The path of the referenced row, or the query that finds it by a unique key. */
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

/** Links keep the prefix of the request if the collection is served there. */
function collectionAddress({ name }: Collection, { address, collections }: ResourceRequest): string {
  const isHere = address.base !== "" || collections.findAtRoot(name) !== undefined;
  return `${isHere ? address.base : `/api/v${collections.version}`}/${name}`;
}

/** The keys of the rows that the caller may change, as path segments. */
type PermittedRows = { readonly update: ReadonlySet<string>; readonly delete: ReadonlySet<string> };

/** Evaluates the policies; skipped if the role has no privilege at all. */
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
