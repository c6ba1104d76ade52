import { parseExactly, textOfValue } from "../../../engine/exact-json.ts";
import { publicBase } from "../../public-address.ts";
import type { Asked } from "../asked.ts";
import type { Collection, Reference } from "../collections.ts";
import { formatKey } from "../parse/key.ts";

type Row = Readonly<Record<string, unknown>>;
type Link = { readonly href: string; readonly method?: string };

/** The rows of a JSON array, or one row, with what leads on from each of them. */
export function withLinks(text: string, collection: Collection, asked: Asked): string {
  const parsed = parseExactly(text);
  const add = (row: Row) => ({ ...row, _links: linksOf(row, collection, asked) });
  return JSON.stringify(Array.isArray(parsed) ? parsed.map(add) : add(parsed as Row));
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

function linksOf(row: Row, collection: Collection, asked: Asked): Readonly<Record<string, Link>> {
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
  if (collection.may.update) links.update = { href, method: "PUT" };
  if (collection.may.delete) links.delete = { href, method: "DELETE" };
  // Of one name the link that every row has counts.
  for (const { name } of collection.actions) links[name] ??= { href: `${href}/${name}`, method: "POST" };
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
