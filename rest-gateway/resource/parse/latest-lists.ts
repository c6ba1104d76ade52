import { oncePer } from "../../../engine/once-per.ts";
import { RecentMap } from "../../../engine/recent-map.ts";
import { queryWithoutApiKey } from "../../auth/credentials.ts";
import type { Asked } from "../asked.ts";
import type { Collection } from "../collections.ts";
import { type ListParameters, parseListParameters } from "./parameters.ts";

/** In characters, each list counted as so many more. */
const MOST_REMEMBERED = 32_000;
const EACH = 500;

/** How lists of a collection were asked for lately, by the words of their queries: most are asked for again. */
const latestOf = oncePer((_collection: Collection) => {
  return new RecentMap<string, ListParameters>(MOST_REMEMBERED, ({ length }) => length + EACH);
});

/** What a list is asked for by: the same object for the same words, as long as the catalogue lasts. */
export function listParameters({ request, target: { collection }, collections, parameters, settings }: Asked) {
  const latest = latestOf(collection);
  const words = `${settings.maxPageSize}?${queryWithoutApiKey(request.rawQuery)}`;
  const known = latest.get(words);
  if (known) return known;
  const read = parseListParameters(parameters, { collection, collections }, settings);
  latest.set(words, read);
  return read;
}
