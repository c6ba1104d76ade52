import type { Action, Collection, Collections } from "../collections.ts";
import type { Nested } from "../relations.ts";
import type { Address } from "./address.ts";
import { parseKey } from "./key.ts";

/** One row on the way to what is asked. */
export type Step = { readonly collection: Collection; readonly key: readonly string[]; readonly nested: Nested | null };

/** What a path leads to. */
export type Target = {
  readonly collection: Collection;
  /** Null: the collection as a whole. */
  readonly key: readonly string[] | null;
  /** Null: the row itself. */
  readonly action: Action | null;
  /** The rows that it lies within, the outermost first. */
  readonly parents: readonly Step[];
  /** How it belongs to the last of them. */
  readonly nested: Nested | null;
};

const DEEPEST = 3;

/** Null: there is nothing of that address. */
export function findTarget({ base, segments }: Address, collections: Collections): Target | null {
  const parents: Step[] = [];
  const [first = ""] = segments;
  let collection = base === "" ? collections.findAtRoot(first) : collections.find(first);
  let nested: Nested | null = null;
  for (let at = 0; collection; at += 2) {
    const segment = segments[at + 1];
    if (segment === undefined) return { collection, key: null, action: null, parents, nested };
    if (collection.key.length === 0) return null;
    const key = parseKey(segment, collection, collections.version);
    const next = segments[at + 2];
    if (next === undefined) return { collection, key, action: null, parents, nested };
    const within = parents.length + 1 < DEEPEST ? collection.nested.find(({ name }) => name === next) : undefined;
    if (!within) {
      const action = segments.length === at + 3 ? collection.actions.find(({ name }) => name === next) : undefined;
      return action ? { collection, key, action, parents, nested } : null;
    }
    parents.push({ collection, key, nested });
    nested = within;
    collection = collections.find(within.target);
  }
  return null;
}
