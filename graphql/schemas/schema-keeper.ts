import { setTimeout as sleep } from "node:timers/promises";
import type { Catalog } from "#catalog";
import type { CatalogRefresh } from "#catalog/loading";
import type { OmittedObject } from "#plugins";
import { commandLine, unavailable } from "#runtime";
import { Coalescer } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";
import { EarlySchema } from "./early-schema.ts";
import { buildServableSchema, isConnectionError, type KnownBuildFaults } from "./resilient-build.ts";
import { RoleSchemas, type RoleSchemasOptions, type ServedSchema } from "./role-schemas.ts";

/** The schema may just have changed when `onInvalid` is called. */
export type SchemaKeeperOptions = Pick<RoleSchemasOptions, "anonRole" | "limits" | "hits" | "onInvalid"> & {
  readonly preset: () => GraphileConfig.Preset;
  readonly catalog: () => Catalog;
  readonly catchUp: CatalogRefresh;
  readonly log: Pick<Logger, "info" | "warn" | "error">;
};

/** Notifications of one DDL script, one per statement, arrive within this time and cause one build. */
const DEBOUNCE_MS = 50;
/** Builds may take this much time without a pause, as after the steps of a migration, before they are limited to half of the time. */
const BUILD_ALLOWANCE_MS = 30_000;
/** Longer pauses are as long as a build. */
const MAX_PAUSE_MS = 1_000;
/** During this time, a newer build replaces a running one whose schema operations can use already. */
const MAX_OUTDATED_MS = 20_000;
/** The number of roles whose schemas are prepared before a new schema is served. */
const MAX_PREPARED_ROLES = 4;
/** How long an operation waits for a build whose schema may allow it. */
const MAX_BUILD_WAIT_MS = 10_000;
/** How many builds an operation waits for: one fails if a change of the database meets its statements. */
const MAX_AWAITED_BUILDS = 3;
/** How long a start waits for the first schema, which takes longer with thousands of tables. The other interfaces do not need it. */
const FIRST_BUILD_WAIT_MS = 10_000;

/** Builds the schema, and rebuilds it when the database has changed; the old one is served meanwhile. */
export class SchemaKeeper {
  readonly #options: SchemaKeeperOptions;
  readonly #builds: Coalescer;
  #served: RoleSchemas | null = null;
  /** The schema of the running build. */
  #early: EarlySchema | null = null;
  /** Pending until operations can use the schema of a build, or the build is over. */
  #upcoming: PromiseWithResolvers<void> | null = null;
  /** Pending until a build is over that was not given up. */
  #building: PromiseWithResolvers<void> | null = null;
  #fault: Error | null = null;
  #omitted: readonly OmittedObject[] = [];
  readonly #knownFaults: KnownBuildFaults = new Map();
  readonly #closing = new AbortController();
  #build: AbortController | null = null;
  /** The number of finished builds, without those that were given up. */
  #finishedBuilds = 0;
  /** The time since which the database differs from the served schema. */
  #outdatedSince = 0;
  /** True if the database has changed since the build began. */
  #isBuildOutdated = false;

  /** The schema, for each catalog, that the database contradicted although the catalog was the current one. */
  readonly #doubted = new WeakMap<Catalog, RoleSchemas>();

  constructor(options: SchemaKeeperOptions) {
    this.#options = options;
    this.#builds = new Coalescer(() => this.#buildAndLog(), DEBOUNCE_MS, {
      allowanceMs: BUILD_ALLOWANCE_MS,
      maxPauseMs: MAX_PAUSE_MS,
    });
  }

  /** Resolves after the first build, successful or not, or after a timeout. */
  async start(schemaWaitMs = FIRST_BUILD_WAIT_MS): Promise<void> {
    const attempt = this.#builds.request(0).catch(() => {});
    await atMost(schemaWaitMs, attempt);
    if (this.isBuildingFirst)
      this.#options.log.info("the GraphQL schema is still being built; the service starts without it");
  }

  /** Call when the database has changed. */
  rebuild(): void {
    this.#outdatedSince ||= performance.now();
    this.#isBuildOutdated = true;
    this.#giveUpOutdatedBuild();
    void this.#builds.request();
  }

  /** The schema for this role. */
  current(role: string): ServedSchema | Promise<ServedSchema> {
    if (this.isBuildingFirst) throw unavailable("GraphQL is not available yet: its schema is being built.");
    if (!this.#served) {
      throw unavailable("GraphQL is not available: its schema could not be built. See the log.");
    }
    return this.#served.schemaOf(role);
  }

  /** The schema that is being built, which serves operations that the current one refuses. Null if there is none yet. */
  upcoming(role: string): ServedSchema | null {
    return this.#early?.schemaOf(role) ?? null;
  }

  /** Resolves when operations can use the next schema, or after a while. Null if they can use it already, or none is expected. */
  whenUpcoming(): Promise<void> | null {
    if (this.#outdatedSince === 0 || this.#early) return null;
    this.#upcoming ??= Promise.withResolvers();
    return atMost(MAX_BUILD_WAIT_MS, this.#upcoming.promise);
  }

  /** Resolves when the running build is over, or after a while. */
  async whenBuilt(): Promise<void> {
    await atMost(MAX_BUILD_WAIT_MS, this.#building?.promise);
  }

  /** A different object for each schema. */
  get version(): object | null {
    return this.#served;
  }

  /** Resolves to true if a newer schema than that one is served; waits for a rebuild when the catalog has changed. */
  async isNewerThan(version: object | null): Promise<boolean> {
    const served = this.#served;
    if (served === null || served !== version) return served !== null;
    if (!(await this.#options.catchUp(served.catalog)) && !this.#mayDiffer(served)) return false;
    const isOver = () => this.#served !== served || this.#closing.signal.aborted;
    for (const last = this.#finishedBuilds + MAX_AWAITED_BUILDS; this.#finishedBuilds < last && !isOver(); )
      await this.#builds.request().catch(() => {});
    return this.#served !== served;
  }

  /**
   * A definition that was changed and changed back while a schema was built may be in the schema, though the catalogue has never had it.
   * True for one schema of each catalogue: the next one differs for no such reason.
   */
  #mayDiffer(served: RoleSchemas): boolean {
    const doubted = this.#doubted.get(served.catalog) ?? served;
    this.#doubted.set(served.catalog, doubted);
    return doubted === served;
  }

  /** The first build is running. */
  get isBuildingFirst(): boolean {
    return this.#served === null && this.#fault === null;
  }

  get isServing(): boolean {
    return this.#served !== null;
  }

  /** Why the served schema may be outdated, or why there is none. */
  get fault(): string | null {
    return this.#fault?.message ?? null;
  }

  /** Objects that callers may use and the served schema omits. */
  get omitted(): readonly OmittedObject[] {
    return this.#omitted;
  }

  /** A running build is aborted at its next step, and not waited for. */
  close(): void {
    this.#closing.abort();
    void this.#builds.close();
  }

  /** Aborts an outdated build whose schema operations can use already: its rest only completes the schema, and the next build replaces it. */
  #giveUpOutdatedBuild(): void {
    const isUsable = this.#served !== null && this.#early !== null;
    if (!isUsable || performance.now() - this.#outdatedSince > MAX_OUTDATED_MS) return;
    this.#build?.abort();
  }

  #admitWaiting(): void {
    this.#upcoming?.resolve();
    this.#upcoming = null;
  }

  async #buildAndLog(): Promise<void> {
    const { log } = this.#options;
    const startedAt = performance.now();
    const build = new AbortController();
    this.#build = build;
    this.#building ??= Promise.withResolvers();
    this.#isBuildOutdated = false;
    try {
      this.#served = await this.#makeSchemas(AbortSignal.any([this.#closing.signal, build.signal]));
      this.#fault = null;
      log.info({ ms: Math.round(performance.now() - startedAt) }, "the GraphQL schema was built");
    } catch (error) {
      if (this.#closing.signal.aborted || build.signal.aborted) return;
      this.#logFault(error as Error);
      // Rethrown to be retried; other errors persist until the database changes.
      if (isConnectionError(error)) throw error;
    } finally {
      this.#build = null;
      if (!build.signal.aborted) {
        this.#finishedBuilds++;
        this.#early = null;
        this.#building?.resolve();
        this.#building = null;
        this.#admitWaiting();
        this.#outdatedSince = this.#isBuildOutdated ? performance.now() : 0;
      }
    }
  }

  async #makeSchemas(signal: AbortSignal): Promise<RoleSchemas> {
    const { preset, catalog, anonRole, limits, hits, onInvalid } = this.#options;
    // The catalog before the build: the database may change meanwhile, and a newer catalog would claim that the schema has followed it.
    const builtWith = catalog();
    const built = await buildServableSchema(preset(), signal, this.#knownFaults, (unfinished) => {
      this.#early = unfinished && new EarlySchema({ schema: unfinished, catalog: builtWith, anonRole, limits });
      if (unfinished) this.#admitWaiting();
      if (this.#isBuildOutdated) this.#giveUpOutdatedBuild();
    });
    const { schema, omitted } = built;
    this.#logOmitted(omitted);
    const made = { schema, catalog: builtWith };
    const schemas = new RoleSchemas({ ...made, anonRole, limits, hits, onInvalid });
    // Built ahead, so that first operations do not wait for them.
    for (const role of [anonRole, ...(this.#served?.firstRoles(MAX_PREPARED_ROLES) ?? [])])
      await schemas.schemaOf(role);
    signal.throwIfAborted();
    return schemas;
  }

  #logOmitted(omitted: readonly OmittedObject[]): void {
    const isNew = JSON.stringify(omitted) !== JSON.stringify(this.#omitted);
    this.#omitted = omitted;
    if (!isNew || omitted.length === 0) return;
    const objects = omitted.map(({ object, reason }) => `${object}: ${reason}`);
    this.#options.log.warn(
      { leftOut: objects },
      `GraphQL is served without some objects of the database: see ${commandLine("doctor")}`,
    );
  }

  #logFault(error: Error): void {
    const { log } = this.#options;
    const isNew = this.#fault?.message !== error.message;
    this.#fault = error;
    if (!isNew) return;
    if (this.#served) log.warn({ err: error }, "the GraphQL schema cannot be built; the previous one is still served");
    else log.error({ err: error }, "the GraphQL schema cannot be built; GraphQL is not served");
  }
}

/** Resolves with the promise, or after this time. */
function atMost(milliseconds: number, promise: Promise<void> | undefined): Promise<void> {
  return Promise.race([promise, sleep(milliseconds, undefined, { ref: false })]);
}
