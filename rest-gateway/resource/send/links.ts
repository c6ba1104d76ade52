import { parseExactly, textOfValue } from "../../../engine/exact-json.ts";
import { publicBase } from "../../public-address.ts";
import type { Asked, AskRows } from "../asked.ts";
import { type Collection, givesRowOf, type Reference } from "../collections.ts";
import { formatKey } from "../parse/key.ts";
import { findPermitted, type Permitted } from "../permitted.ts";

type Row = Readonly<Record<string, unknown>>;
type Link = { readonly href: string; readonly method?: string };

/** The rows of a JSON array, or one row, with what leads on from each of them and what the caller may do with it. */
export async function withLinks(text: string, collection: Collection, asked: Asked, ask: AskRows): Promise<string> {
  const parsed = parseExactly(text);
  const rows = (Array.isArray(parsed) ? parsed : [parsed]) as readonly Row[];
  const permitted = await findPermitted(rows, collection, ask);
  const linked = rows.map((row) => ({ ...row, _links: linksOf(row, { collection, asked, permitted }) }));
  return JSON.stringify(Array.isArray(parsed) ? linked : linked[0]);
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

type Around = { readonly collection: Collection; readonly asked: Asked; readonly permitted: Permitted };

function linksOf(row: Row, { collection, asked, permitted }: Around): Readonly<Record<string, Link>> {
  const { collections, settings } = asked;
  const base = publicBase(settings.publicUrl);
  const links: Record<string, Link> = {};
  for (const { name, field, target, relationship } of collection.references) {
    const value = row[field.name];
    const there = collections.find(target);
    const isShown = value !== undefined && value !== null && there?.may.read;
    const address = isShown && refersToKey(relationship, there) ? addressBy([value], there, asked) : null;
    if (address !== null) links[name] = { href: `${base}${address}` };
  }
  const own = addressOf(row, collection, asked);
  if (own === null) return links;
  const href = `${base}${own}`;
  links.self = { href };
  for (const { name, target } of collection.nested) {
    if (collections.find(target)?.may.read) links[name] = { href: `${href}/${name}` };
  }
  const key = formatKey(collection.key.map(({ name }) => textOfValue(row[name])))!;
  if (permitted.update.has(key)) links.update = { href, method: "PUT" };
  if (permitted.delete.has(key)) links.delete = { href, method: "DELETE" };
  for (const { name, routine } of collection.actions) {
    // What gives the row back is taken for a change of it. Of one name the link that every row has counts.
    if (givesRowOf(collection, routine) && !permitted.update.has(key)) continue;
    links[name] ??= { href: `${href}/${name}`, method: "POST" };
  }
  return links;
}

/** A reference may be to another unique column, whose value addresses no row, or the wrong one. */
function refersToKey({ columns: [pair] }: Reference["relationship"], { key: [only, ...more] }: Collection): boolean {
  return more.length === 0 && only?.column.name === pair!.target;
}

/** Where the request stayed, as far as the collection is served there. */
function collectionAddress({ name }: Collection, { address, collections }: Asked): string {
  const isHere = address.base !== "" || collections.findAtRoot(name) !== undefined;
  return `${isHere ? address.base : `/api/v${collections.version}`}/${name}`;
}
