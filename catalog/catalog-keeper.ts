import { isDeepStrictEqual } from "node:util";
import type { Listener } from "#postgres/client";
import type { AsOwner } from "#postgres/database";
import { Coalescer, Supervisor } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";
import type { Catalog } from "./catalog.ts";
import type { CatalogOptions } from "./catalog-rows.ts";
import { CatalogWatch, readFingerprint, UNKNOWN_FINGERPRINT } from "./catalog-watch.ts";
import { type LoadedCatalog, loadCatalog } from "./load-catalog.ts";

export type CatalogKeeper = {
  /** Returns a complete, consistent snapshot. A request uses one snapshot throughout. */
  current(): Catalog;
  /** Calls back with each new catalogue once it is the current one. Returns a function that removes the listener. */
  onChange(listener: CatalogListener): () => void;
  /**
   * Calls back after a load that has found the database changed, even if the catalogue stays the same, for example if the
   * body of a function that a policy calls has changed. Returns a function that removes the listener.
   */
  onDifference(listener: () => void): () => void;
  /** Resolves when a catalogue that was read after this call is the current one. */
  reload(): Promise<void>;
  /** Checks for changes soon, after a request has named an unknown object, which may be new. */
  checkSoon(): void;
  /** Changes the options of the catalogue. Resolves when a catalogue with these options is the current one. */
  setOptions(requested: CatalogOptions): Promise<void>;
  state(): CatalogState;
  close(): Promise<void>;
};

type CatalogListener = (catalog: Catalog, previous: Catalog) => void;

type CatalogState = {
  /** `degraded` means that the last reload failed, so the catalogue may be out of date. */
  readonly status: "current" | "reloading" | "degraded";
  /** The reason why the status is degraded. */
  readonly reason: string | null;
  readonly version: number;
  /** The last time at which the catalogue was known to match the database. */
  readonly confirmedAt: Date;
  /** The duration of the last load, in milliseconds by subject. */
  readonly timings: Readonly<Record<string, number>>;
  /** The time for which a reload has been due, in milliseconds; 0 if none is. */
  readonly lateMs: number;
};

export type CatalogKeeperOptions = CatalogOptions & {
  readonly asOwner: AsOwner;
  /** Null if changes are detected by polling only. */
  readonly listener: Listener | null;
  /** The NOTIFY channel of PostgREST's `reload schema` and `reload config`. */
  readonly channel: string;
  readonly supervisor?: Supervisor;
  readonly log: Pick<Logger, "info" | "warn" | "error">;
  readonly debounceMs?: number;
  /** The interval between polls for changes without a notification; it grows if polling is expensive or keeps finding nothing. */
  readonly pollIntervalMs?: number;
};

/** The limit keeps the catalogue up to date within seconds during frequent changes, even on a busy machine where reading takes long. */
const MAX_PAUSE_MS = 1_000;

/** Both reload the catalogue, because it contains the settings of roles. */
const RELOAD_PAYLOADS = new Set(["", "reload schema", "reload config"]);

/** Loads the catalogue and keeps it up to date. Rejects if the first load fails. */
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
  readonly #differenceListeners = new Set<() => void>();
  #digest: string | null = null;
  #stopListening: () => void = () => {};
  #loaded: (LoadedCatalog & { readonly wanted: CatalogOptions }) | null = null;
  #confirmedAt = new Date();
  #missingSchemas: readonly string[] = [];
  #error: Error | null = null;
  #closed = false;

  constructor(options: CatalogKeeperOptions) {
    const { asOwner, debounceMs = 100, pollIntervalMs: lookEveryMs = 5_000 } = options;
    const { supervisor = new Supervisor(options) } = options;
    this.#options = options;
    this.#requested = pickCatalogOptions(options);
    this.#reloads = new Coalescer(() => this.#loadAndLog(), debounceMs, { maxPauseMs: MAX_PAUSE_MS });
    this.#watch = new CatalogWatch({
      asOwner,
      intervalMs: lookEveryMs,
      report: supervisor.report("catalogue watch"),
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

  onDifference(listener: () => void): () => void {
    this.#differenceListeners.add(listener);
    return () => this.#differenceListeners.delete(listener);
  }

  reload(): Promise<void> {
    return this.#reloads.request();
  }

  checkSoon(): void {
    this.#watch.checkSoon();
  }

  async setOptions(options: CatalogOptions): Promise<void> {
    const requested = pickCatalogOptions(options);
    // Both the current catalogue and the pending reload, if any, have these options.
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
      lateMs: this.#reloads.lateMs,
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
      // A notification may have been sent before LISTEN.
      await this.#watch.check();
    } catch (error) {
      if (!this.#closed) log.warn({ err: error, channel }, "LISTEN failed: the catalogue is not reloaded on NOTIFY");
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
      if (this.#error) log.info({}, "the catalogue was reloaded after a failure");
      this.#error = null;
    } catch (error) {
      if (!this.#error && this.#loaded)
        log.warn({ err: error }, "the catalogue could not be reloaded; the old one stays in use");
      this.#error = error as Error;
      throw error;
    }
  }

  async #load(): Promise<void> {
    const { asOwner } = this.#options;
    const requested = this.#requested;
    const previous = this.#loaded?.catalog ?? null;
    const { fingerprint, loaded } = await asOwner(async (client) => ({
      // Read before the catalogue, so that the next check detects a change in between.
      fingerprint: await readFingerprint(client),
      loaded: await loadCatalog(client, requested, previous),
    }));
    const changed = loaded.catalog !== previous;
    this.#loaded = { ...loaded, wanted: requested };
    this.#markConfirmed();
    this.#watch.setBaseline(loaded.isProvisional ? UNKNOWN_FINGERPRINT : fingerprint, { changed });
    this.#warnOfMissingSchemas(requested.schemas.filter((schema) => !loaded.catalog.schemas.has(schema)));
    if (changed) this.#notifyListeners(loaded, previous);
    const isDifferent = this.#digest !== null && this.#digest !== fingerprint.digest;
    this.#digest = fingerprint.digest;
    if (isDifferent) for (const listener of this.#differenceListeners) listener();
  }

  /** Logs the same schemas only once. */
  #warnOfMissingSchemas(schemas: readonly string[]): void {
    if (isDeepStrictEqual(schemas, this.#missingSchemas)) return;
    this.#missingSchemas = schemas;
    if (schemas.length > 0) this.#options.log.warn({ schemas }, "exposed schemas do not exist");
  }

  #notifyListeners({ catalog, timings }: LoadedCatalog, previous: Catalog | null): void {
    const { log } = this.#options;
    log.info({ version: catalog.version, ms: timings.total }, "the catalogue was read");
    if (!previous) return;
    for (const follower of this.#listeners) {
      try {
        follower(catalog, previous);
      } catch (error) {
        log.error({ err: error }, "a listener failed to process a new catalogue");
      }
    }
  }
}

function pickCatalogOptions({ schemas, extraSearchPath, loginRole, timeZones = true }: CatalogOptions): CatalogOptions {
  return { schemas, extraSearchPath, loginRole, timeZones };
}

/** Returns true if there is a newer catalogue than one that the database has contradicted. */
export type CatalogRefresh = (outdated: Catalog) => Promise<boolean>;

export function makeCatalogRefresh(keeper: Pick<CatalogKeeper, "current" | "reload" | "state">): CatalogRefresh {
  /** Catalogues that a reload has confirmed: the error had another cause, and reloading again is pointless until the database reports a change. */
  const confirmedCurrent = new WeakSet<Catalog>();
  return async (outdated) => {
    if (keeper.current() !== outdated) return true;
    if (confirmedCurrent.has(outdated) && keeper.state().lateMs === 0) return false;
    try {
      await keeper.reload();
    } catch {
      // The keeper logs the error and retries.
      return false;
    }
    const isNewer = keeper.current() !== outdated;
    if (!isNewer) confirmedCurrent.add(outdated);
    return isNewer;
  };
}
