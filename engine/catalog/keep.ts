import { isDeepStrictEqual } from "node:util";
import { Coalescer } from "../coalescer.ts";
import type { AsOwner } from "../database/as-owner.ts";
import type { Listener } from "../listen.ts";
import type { Logger } from "../log.ts";
import type { Catalog } from "./catalog.ts";
import type { CatalogOptions } from "./content.ts";
import { readFingerprint } from "./fingerprint.ts";
import { type Loaded, loadCatalog } from "./load.ts";
import { Watch } from "./watch.ts";

export type CatalogKeeper = {
  /** Whole and consistent; hold on to one for the length of a request. */
  current(): Catalog;
  /** Called with each new catalogue once it is the current one. What it returns ends that. */
  onChange(listener: ChangeListener): () => void;
  /** Resolves when a reading that began after this call is in place. */
  reload(): Promise<void>;
  /** Tells that somebody named what is not in it: it may have been made a moment ago, and is looked for soon. */
  suspect(): void;
  /** What is to be read from now on. Resolves when a catalogue of it is in place. */
  read(wanted: CatalogOptions): Promise<void>;
  state(): CatalogState;
  close(): Promise<void>;
};

export type ChangeListener = (catalog: Catalog, previous: Catalog) => void;

export type CatalogState = {
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

export type KeeperOptions = CatalogOptions & {
  readonly asOwner: AsOwner;
  /** Null: changes are found by looking alone. */
  readonly listener: Listener | null;
  /** Where PostgREST's `reload schema` and `reload config` are heard. */
  readonly channel: string;
  readonly log: Pick<Logger, "info" | "warn" | "error">;
  readonly debounceMs?: number;
  /** How often to look for changes that nobody told of; it becomes less often where looking is expensive or in vain. */
  readonly lookEveryMs?: number;
};

/** Both words mean the same here, because the settings of roles are part of the catalogue. */
const RELOAD = new Set(["", "reload schema", "reload config"]);

/** Reads the catalogue, and from then on keeps up with the database. Rejects when it cannot be read at first. */
export async function keepCatalog(options: KeeperOptions): Promise<CatalogKeeper> {
  const keeper = new Keeper(options);
  await keeper.start();
  return keeper;
}

class Keeper implements CatalogKeeper {
  readonly #options: KeeperOptions;
  #wanted: CatalogOptions;
  readonly #reloads: Coalescer;
  readonly #watch: Watch;
  readonly #followers = new Set<ChangeListener>();
  #stopListening: () => void = () => {};
  #loaded: (Loaded & { readonly wanted: CatalogOptions }) | null = null;
  #confirmedAt = new Date();
  #missing: readonly string[] = [];
  #fault: Error | null = null;
  #closed = false;

  constructor(options: KeeperOptions) {
    const { asOwner, debounceMs = 100, lookEveryMs = 5_000 } = options;
    this.#options = options;
    this.#wanted = wantedOf(options);
    this.#reloads = new Coalescer(() => this.#loadOrTell(), debounceMs);
    this.#watch = new Watch({
      asOwner,
      everyMs: lookEveryMs,
      onDifference: () => this.#requestReload(),
      onAgreement: () => this.#confirm(),
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

  onChange(listener: ChangeListener): () => void {
    this.#followers.add(listener);
    return () => this.#followers.delete(listener);
  }

  reload(): Promise<void> {
    return this.#reloads.request();
  }

  suspect(): void {
    this.#watch.lookSoon();
  }

  async read(options: CatalogOptions): Promise<void> {
    const wanted = wantedOf(options);
    // What is there is what is wanted, and nothing else is on its way.
    if ([this.#loaded?.wanted, this.#wanted].every((known) => isDeepStrictEqual(known, wanted))) return;
    this.#wanted = wanted;
    await this.#reloads.request(0);
  }

  state(): CatalogState {
    const { catalog, timings } = this.#loaded!;
    return {
      status: this.#fault ? "degraded" : this.#reloads.isBusy ? "reloading" : "current",
      reason: this.#fault?.message ?? null,
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
      const unlisten = await listener.listen(channel, (payload) => RELOAD.has(payload) && this.#requestReload());
      const forgetGaps = this.#stopListening;
      this.#stopListening = () => {
        unlisten();
        forgetGaps();
      };
      if (this.#closed) this.#stopListening();
      // What was told before it listened.
      await this.#watch.look();
    } catch (error) {
      if (!this.#closed) log.warn({ err: error, channel }, "requests to reload the catalogue are not heard");
    }
  }

  #requestReload(): void {
    this.#reloads.request().catch(() => {});
  }

  #confirm(): void {
    this.#confirmedAt = new Date();
  }

  async #loadOrTell(): Promise<void> {
    const { log } = this.#options;
    try {
      await this.#load();
      if (this.#fault) log.info({}, "the catalogue can be read again");
      this.#fault = null;
    } catch (error) {
      if (!this.#fault && this.#loaded) log.warn({ err: error }, "the catalogue cannot be read; the old one stays");
      this.#fault = error as Error;
      throw error;
    }
  }

  async #load(): Promise<void> {
    const { asOwner } = this.#options;
    const wanted = this.#wanted;
    const previous = this.#loaded?.catalog ?? null;
    const { fingerprint, loaded } = await asOwner(async (client) => ({
      // Taken first: a change in between is then found by the next look, and never missed.
      fingerprint: await readFingerprint(client),
      loaded: await loadCatalog(client, wanted, previous),
    }));
    const changed = loaded.catalog !== previous;
    this.#loaded = { ...loaded, wanted };
    this.#confirm();
    this.#watch.settle(fingerprint, { changed });
    this.#warnOfMissing(wanted.schemas.filter((schema) => !loaded.catalog.schemas.has(schema)));
    if (changed) this.#announce(loaded, previous);
  }

  /** Once for as long as it is so. */
  #warnOfMissing(schemas: readonly string[]): void {
    if (isDeepStrictEqual(schemas, this.#missing)) return;
    this.#missing = schemas;
    if (schemas.length > 0) this.#options.log.warn({ schemas }, "schemas that should be served do not exist");
  }

  #announce({ catalog, timings }: Loaded, previous: Catalog | null): void {
    const { log } = this.#options;
    log.info({ version: catalog.version, ms: timings.total }, "the catalogue was read");
    if (!previous) return;
    for (const follower of this.#followers) {
      try {
        follower(catalog, previous);
      } catch (error) {
        log.error({ err: error }, "what follows the catalogue failed to follow a change");
      }
    }
  }
}

function wantedOf({ schemas, extraSearchPath, loginRole, timeZones = true }: CatalogOptions): CatalogOptions {
  return { schemas, extraSearchPath, loginRole, timeZones };
}
