import { isDeepStrictEqual } from "node:util";
import { Coalescer } from "../concurrency/coalescer.ts";
import type { AsOwner } from "../database/owner-pool.ts";
import type { Logger } from "../output/log.ts";
import type { Listener } from "../pg-client/listen.ts";
import type { Catalog } from "./catalog.ts";
import type { CatalogOptions } from "./catalog-rows.ts";
import { CatalogWatch, readFingerprint } from "./catalog-watch.ts";
import { type LoadedCatalog, loadCatalog } from "./load-catalog.ts";

export type CatalogKeeper = {
  /** Whole and consistent; hold on to one for the length of a request. */
  current(): Catalog;
  /** Called with each new catalogue once it is the current one. What it returns ends that. */
  onChange(listener: CatalogListener): () => void;
  /** Resolves when a reading that began after this call is in place. */
  reload(): Promise<void>;
  /** Tells that somebody named what is not in it: it may have been made a moment ago, and is looked for soon. */
  checkSoon(): void;
  /** What is to be read from now on. Resolves when a catalogue of it is in place. */
  setOptions(requested: CatalogOptions): Promise<void>;
  state(): CatalogState;
  close(): Promise<void>;
};

type CatalogListener = (catalog: Catalog, previous: Catalog) => void;

type CatalogState = {
  /** `degraded`: it could not be read again, and what is served may be out of date. */
  readonly status: "current" | "reloading" | "degraded";
  /** Why it is degraded. */
  readonly reason: string | null;
  readonly version: number;
  /** When the database was last seen to agree with it. */
  readonly confirmedAt: Date;
  /** Of the last reading: milliseconds by subject. */
  readonly timings: Readonly<Record<string, number>>;
};

export type CatalogKeeperOptions = CatalogOptions & {
  readonly asOwner: AsOwner;
  /** Null: changes are found by looking alone. */
  readonly listener: Listener | null;
  /** Where PostgREST's `reload schema` and `reload config` are heard. */
  readonly channel: string;
  readonly log: Pick<Logger, "info" | "warn" | "error">;
  readonly debounceMs?: number;
  /** How often to look for changes that nobody told of; it becomes less often where looking is expensive or in vain. */
  readonly pollIntervalMs?: number;
};

/** Both words mean the same here, because the settings of roles are part of the catalogue. */
const RELOAD_PAYLOADS = new Set(["", "reload schema", "reload config"]);

/** Reads the catalogue, and from then on keeps up with the database. Rejects when it cannot be read at first. */
export async function keepCatalog(options: CatalogKeeperOptions): Promise<CatalogKeeper> {
  const keeper = new DatabaseCatalogKeeper(options);
  await keeper.start();
  return keeper;
}

class DatabaseCatalogKeeper implements CatalogKeeper {
  readonly #options: CatalogKeeperOptions;
  #requested: CatalogOptions;
  readonly #reloads: Coalescer;
  readonly #watch: CatalogWatch;
  readonly #listeners = new Set<CatalogListener>();
  #stopListening: () => void = () => {};
  #loaded: (LoadedCatalog & { readonly wanted: CatalogOptions }) | null = null;
  #confirmedAt = new Date();
  #missingSchemas: readonly string[] = [];
  #error: Error | null = null;
  #closed = false;

  constructor(options: CatalogKeeperOptions) {
    const { asOwner, debounceMs = 100, pollIntervalMs: lookEveryMs = 5_000 } = options;
    this.#options = options;
    this.#requested = pickCatalogOptions(options);
    this.#reloads = new Coalescer(() => this.#loadAndLog(), debounceMs);
    this.#watch = new CatalogWatch({
      asOwner,
      intervalMs: lookEveryMs,
      onChanged: () => this.#requestReload(),
      onUnchanged: () => this.#markConfirmed(),
    });
  }

  async start(): Promise<void> {
    this.#listen();
    try {
      await this.#reloads.request(0);
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  current(): Catalog {
    return this.#loaded!.catalog;
  }

  onChange(listener: CatalogListener): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  reload(): Promise<void> {
    return this.#reloads.request();
  }

  checkSoon(): void {
    this.#watch.checkSoon();
  }

  async setOptions(options: CatalogOptions): Promise<void> {
    const requested = pickCatalogOptions(options);
    // What is there is what is wanted, and nothing else is on its way.
    if ([this.#loaded?.wanted, this.#requested].every((known) => isDeepStrictEqual(known, requested))) return;
    this.#requested = requested;
    await this.#reloads.request(0);
  }

  state(): CatalogState {
    const { catalog, timings } = this.#loaded!;
    return {
      status: this.#error ? "degraded" : this.#reloads.isBusy ? "reloading" : "current",
      reason: this.#error?.message ?? null,
      version: catalog.version,
      confirmedAt: this.#confirmedAt,
      timings,
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#stopListening();
    await Promise.all([this.#reloads.close(), this.#watch.close()]);
  }

  async #listen(): Promise<void> {
    const { listener, channel, log } = this.#options;
    if (!listener) return;
    this.#stopListening = listener.onGap(() => this.#requestReload());
    try {
      const unlisten = await listener.listen(
        channel,
        (payload) => RELOAD_PAYLOADS.has(payload) && this.#requestReload(),
      );
      const forgetGaps = this.#stopListening;
      this.#stopListening = () => {
        unlisten();
        forgetGaps();
      };
      if (this.#closed) this.#stopListening();
      // What was told before it listened.
      await this.#watch.check();
    } catch (error) {
      if (!this.#closed) log.warn({ err: error, channel }, "requests to reload the catalogue are not heard");
    }
  }

  #requestReload(): void {
    this.#reloads.request().catch(() => {});
  }

  #markConfirmed(): void {
    this.#confirmedAt = new Date();
  }

  async #loadAndLog(): Promise<void> {
    const { log } = this.#options;
    try {
      await this.#load();
      if (this.#error) log.info({}, "the catalogue can be read again");
      this.#error = null;
    } catch (error) {
      if (!this.#error && this.#loaded) log.warn({ err: error }, "the catalogue cannot be read; the old one stays");
      this.#error = error as Error;
      throw error;
    }
  }

  async #load(): Promise<void> {
    const { asOwner } = this.#options;
    const requested = this.#requested;
    const previous = this.#loaded?.catalog ?? null;
    const { fingerprint, loaded } = await asOwner(async (client) => ({
      // Taken first: a change in between is then found by the next look, and never missed.
      fingerprint: await readFingerprint(client),
      loaded: await loadCatalog(client, requested, previous),
    }));
    const changed = loaded.catalog !== previous;
    this.#loaded = { ...loaded, wanted: requested };
    this.#markConfirmed();
    this.#watch.setBaseline(fingerprint, { changed });
    this.#warnOfMissingSchemas(requested.schemas.filter((schema) => !loaded.catalog.schemas.has(schema)));
    if (changed) this.#notifyListeners(loaded, previous);
  }

  /** Once for as long as it is so. */
  #warnOfMissingSchemas(schemas: readonly string[]): void {
    if (isDeepStrictEqual(schemas, this.#missingSchemas)) return;
    this.#missingSchemas = schemas;
    if (schemas.length > 0) this.#options.log.warn({ schemas }, "schemas that should be served do not exist");
  }

  #notifyListeners({ catalog, timings }: LoadedCatalog, previous: Catalog | null): void {
    const { log } = this.#options;
    log.info({ version: catalog.version, ms: timings.total }, "the catalogue was read");
    if (!previous) return;
    for (const follower of this.#listeners) {
      try {
        follower(catalog, previous);
      } catch (error) {
        log.error({ err: error }, "what follows the catalogue failed to follow a change");
      }
    }
  }
}

function pickCatalogOptions({ schemas, extraSearchPath, loginRole, timeZones = true }: CatalogOptions): CatalogOptions {
  return { schemas, extraSearchPath, loginRole, timeZones };
}

/** Resolves with whether there is a newer catalogue than the given one, which the database did not agree with. */
export type CatalogRefresh = (outdated: Catalog) => Promise<boolean>;

export function makeCatalogRefresh(keeper: Pick<CatalogKeeper, "current" | "reload">): CatalogRefresh {
  /** Read again without a difference: the fault was another one, and would be so the next time. */
  const confirmedCurrent = new WeakSet<Catalog>();
  return async (outdated) => {
    if (keeper.current() !== outdated) return true;
    if (confirmedCurrent.has(outdated)) return false;
    try {
      await keeper.reload();
    } catch {
      // The keeper tells of it, and tries again.
      return false;
    }
    const isNewer = keeper.current() !== outdated;
    if (!isNewer) confirmedCurrent.add(outdated);
    return isNewer;
  };
}
