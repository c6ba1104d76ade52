import { textOfValue } from "../../../engine/exact-json.ts";
import { type JsonRecord, NO_LIMITS, readRecords } from "../../../engine/json/records.ts";
import { runStepwise, type Stepwise } from "../../../engine/stepwise.ts";
import { publicBase } from "../../public-address.ts";
import type { Asked, AskRows } from "../asked.ts";
import { type Collection, givesRowOf } from "../collections.ts";
import { firstFree } from "../first-free.ts";
import { formatKey } from "../parse/key.ts";
import { isFilteredByEquality } from "../parse/parameters.ts";
import { findPermitted, type Permitted } from "../permitted.ts";
import type { Reference } from "../relations.ts";

type Row = Readonly<Record<string, unknown>>;
type Link = { readonly href: string; readonly method?: string };

/** The rows of a JSON array, or one row, with what leads on from each of them and what the caller may do with it. */
export async function withLinks(text: string, collection: Collection, asked: Asked, ask: AskRows): Promise<string> {
  const { signal } = asked.request;
  const found = await runStepwise(readRecords(Buffer.from(text), NO_LIMITS), signal);
  if (found.kind !== "object" && found.kind !== "list") throw new TypeError("Rows are JSON objects");
  const rows = await runStepwise(readRows(found.records, collection), signal);
  const permitted = await findPermitted(rows, collection, ask);
  const linked = await runStepwise(writeRows(found.records, rows, { collection, asked, permitted }), signal);
  return found.kind === "list" ? `[${linked.join(",")}]` : linked[0]!;
}

/** Of each row the values that links are made of: whatever else there is stays as Postgres has written it. */
function* readRows(records: readonly JsonRecord[], { key, references }: Collection): Stepwise<readonly Row[]> {
  const fields = [...key, ...references.flatMap((reference) => reference.fields)];
  const names = [...new Set(fields.map(({ name }) => name))];
  const rows: Row[] = [];
  for (const record of records) {
    const members = record.members();
    const shown = names.filter((name) => members.has(name));
    rows.push(Object.fromEntries(shown.map((name) => [name, members.get(name)!.value])));
    yield;
  }
  return rows;
}

function* writeRows(
  records: readonly JsonRecord[],
  rows: readonly Row[],
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

/** `/users/7`; null where the row does not show its whole key, or has none. */
function addressOf(row: Row, collection: Collection, asked: Asked): string | null {
  const values = collection.key.map(({ name }) => row[name]);
  if (values.includes(undefined)) return null;
  return addressBy(values, collection, asked);
}

/** Null where nothing would stand in it. */
function addressBy(key: readonly unknown[], collection: Collection, asked: Asked): string | null {
  const text = formatKey(key.map(textOfValue));
  return text === null ? null : `${collectionAddress(collection, asked)}/${text}`;
}

type LinkContext = { readonly collection: Collection; readonly asked: Asked; readonly permitted: Permitted };

function linksOf(row: Row, { collection, asked, permitted }: LinkContext): Readonly<Record<string, Link>> {
  const { collections, settings } = asked;
  const base = publicBase(settings.publicUrl);
  const links = new Map<string, Link>();
  /** Under another name where that one is taken. */
  const add = (name: string, link: Link) => {
    const isTaken = (each: string) => links.has(each) || OF_EVERY_ROW.has(each);
    links.set(
      firstFree([name], isTaken, (first, number) => `${first}-${number}`),
      link,
    );
  };
  for (const reference of collection.references) {
    const there = collections.find(reference.target);
    const address = there?.may.read ? referredAddress(row, reference, there, asked) : null;
    if (address !== null) add(reference.name, { href: `${base}${address}` });
  }
  const own = addressOf(row, collection, asked);
  if (own === null) return Object.fromEntries(links);
  const href = `${base}${own}`;
  links.set("self", { href });
  for (const { name, target } of collection.nested) {
    if (collections.find(target)?.may.read) add(name, { href: `${href}/${name}` });
  }
  const key = formatKey(collection.key.map(({ name }) => textOfValue(row[name])))!;
  if (permitted.update.has(key)) links.set("update", { href, method: "PUT" });
  if (permitted.delete.has(key)) links.set("delete", { href, method: "DELETE" });
  for (const { name, routine } of collection.actions) {
    // What gives the row back is taken for a change of it. Of one name the link that every row has counts.
    if (givesRowOf(collection, routine) && !permitted.update.has(key)) continue;
    if (!links.has(name)) links.set(name, { href: `${href}/${name}`, method: "POST" });
  }
  return Object.fromEntries(links);
}

const OF_EVERY_ROW: ReadonlySet<string> = new Set(["self", "update", "delete"]);

/** Of the row that is referred to: its own, or else that of the list of all rows with these values, which is the only one. */
function referredAddress(
  row: Row,
  { fields, relationship }: Reference,
  there: Collection,
  asked: Asked,
): string | null {
  const values = new Map(relationship.columns.map(({ target }, index) => [target, row[fields[index]!.name]] as const));
  if ([...values.values()].some((value) => value === undefined || value === null)) return null;
  const isItsKey = there.key.length === values.size && there.key.every(({ column }) => values.has(column.name));
  if (isItsKey) {
    const key = there.key.map(({ column }) => values.get(column.name));
    return addressBy(key, there, asked);
  }
  const query = new URLSearchParams();
  for (const [column, value] of values) {
    const field = there.fields.find((each) => each.column.name === column);
    if (!field || !isFilteredByEquality(field, there)) return null;
    query.set(field.name, textOfValue(value));
  }
  return `${collectionAddress(there, asked)}?${query}`;
}

/** Where the request stayed, as far as the collection is served there. */
function collectionAddress({ name }: Collection, { address, collections }: Asked): string {
  const isHere = address.base !== "" || collections.findAtRoot(name) !== undefined;
  return `${isHere ? address.base : `/api/v${collections.version}`}/${name}`;
}
