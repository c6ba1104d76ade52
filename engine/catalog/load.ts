import type pg from "pg";
import { assembleCatalog } from "./assemble.ts";
import type { Catalog } from "./catalog.ts";
import { type CatalogOptions, readContent } from "./content.ts";
import { makeReader } from "./reader.ts";
import { inSnapshot } from "./snapshot.ts";
import { readTimeZones } from "./time-zones.ts";

export type Loaded = {
  readonly catalog: Catalog;
  /** Milliseconds by subject, and `total`. */
  readonly timings: Readonly<Record<string, number>>;
};

const NO_TIME_ZONES: ReadonlySet<string> = new Set();

/** Reads the database anew. When nothing differs from `previous`, that very object is the answer. The client must not be in a transaction. */
export async function loadCatalog(
  client: pg.ClientBase,
  options: CatalogOptions,
  previous: Catalog | null = null,
): Promise<Loaded> {
  const startedAt = performance.now();
  const { read, contentHash, timings } = makeReader(client, options);
  const { content, hash, timeZones } = await inSnapshot(client, async () => {
    const content = await readContent(read, options);
    const hash = contentHash();
    // The names of time zones change with the server only, and take it a while to list.
    const known = previous?.server.release === content.server.release ? previous.timeZones : NO_TIME_ZONES;
    if (options.timeZones === false) return { content, hash, timeZones: NO_TIME_ZONES };
    return { content, hash, timeZones: known.size > 0 ? known : await readTimeZones(read) };
  });
  const catalog =
    previous?.hash === hash
      ? previous
      : await assembleCatalog(content, options, { version: (previous?.version ?? 0) + 1, hash, timeZones });
  return { catalog, timings: { ...timings, total: Math.round(performance.now() - startedAt) } };
}
