import { setTimeout as sleep } from "node:timers/promises";
import type { Catalog, CatalogRefresh } from "#catalog";
import type { OmittedObject } from "#plugins";
import { type CacheHits, commandLine, unavailable } from "#runtime";
import { Coalescer } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";
import type { DocumentLimits } from "./document-size.ts";
import { buildServableSchema, isConnectionError, type KnownBuildFaults } from "./resilient-build.ts";
import { RoleSchemas, type ServedSchema } from "./role-schemas.ts";

export type SchemaKeeperOptions = {
  readonly preset: () => GraphileConfig.Preset;
  readonly catalog: () => Catalog;
  readonly catchUp: CatalogRefresh;
  readonly anonRole: string;
  readonly limits: DocumentLimits;
  /** Counts cache hits of documents. */
  readonly hits?: CacheHits;
  /** Called when a document fails validation, since the schema may just have changed. */
  readonly onInvalid?: () => void;
  readonly log: Pick<Logger, "info" | "warn" | "error">;
};

/** Notifications of one DDL script, one per statement, arrive within this time and cause one build. */
const DEBOUNCE_MS = 50;
/** The number of roles whose schemas are prepared before a new schema is served. */
const MAX_PREPARED_ROLES = 4;
/** How many builds an operation waits for: one fails if a change of the database meets its statements. */
const MAX_AWAITED_BUILDS = 3;
/** How long a start waits for the first schema, which takes longer with thousands of tables. The other interfaces do not need it. */
const FIRST_BUILD_WAIT_MS = 10_000;

/** Builds the schema, and rebuilds it when the database has changed; the old one is served meanwhile. */
export class SchemaKeeper {
  readonly #options: SchemaKeeperOptions;
  readonly #builds: Coalescer;
  #served: RoleSchemas | null = null;
  #fault: Error | null = null;
  #omitted: readonly OmittedObject[] = [];
  readonly #knownFaults: KnownBuildFaults = new Map();
  readonly #closing = new AbortController();

  constructor(options: SchemaKeeperOptions) {
    this.#options = options;
    this.#builds = new Coalescer(() => this.#buildAndLog(), DEBOUNCE_MS);
  }

  /** Resolves after the first build, successful or not, or after a timeout. */
  async start(schemaWaitMs = FIRST_BUILD_WAIT_MS): Promise<void> {
    const attempt = this.#builds.request(0).catch(() => {});
    await Promise.race([attempt, sleep(schemaWaitMs, undefined, { ref: false })]);
    if (this.isBuildingFirst)
      this.#options.log.info("the GraphQL schema is still being built; the service starts without it");
  }

  /** Call when the database has changed. */
  rebuild(): void {
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

  /** A different object for each schema. */
  get version(): object | null {
    return this.#served;
  }

  /** Resolves to whether a newer schema than that one is served; waits for a rebuild when the catalog has changed. */
  async isNewerThan(version: object | null): Promise<boolean> {
    const served = this.#served;
    if (served === null || served !== version) return served !== null;
    if (!(await this.#options.catchUp(served.catalog))) return false;
    for (let builds = 0; builds < MAX_AWAITED_BUILDS && this.#served === served; builds++)
      await this.#builds.request().catch(() => {});
    return this.#served !== served;
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

  async #buildAndLog(): Promise<void> {
    const { log } = this.#options;
    const startedAt = performance.now();
    try {
      this.#served = await this.#build();
      this.#fault = null;
      log.info({ ms: Math.round(performance.now() - startedAt) }, "the GraphQL schema was built");
    } catch (error) {
      if (this.#closing.signal.aborted) return;
      this.#logFault(error as Error);
      // Rethrown to be retried; other errors persist until the database changes.
      if (isConnectionError(error)) throw error;
    }
  }

  async #build(): Promise<RoleSchemas> {
    const { preset, catalog, anonRole, limits, hits, onInvalid } = this.#options;
    // The one before the build: the database may change meanwhile, and a newer one would tell that the schema has followed it.
    const builtWith = catalog();
    const built = await buildServableSchema(preset(), this.#closing.signal, this.#knownFaults);
    const { schema, resolvedPreset, omitted } = built;
    this.#logOmitted(omitted);
    const made = { schema, resolvedPreset, catalog: builtWith };
    const schemas = new RoleSchemas({ ...made, anonRole, limits, hits, onInvalid });
    // Built ahead, so that first operations do not wait for them.
    for (const role of [anonRole, ...(this.#served?.firstRoles(MAX_PREPARED_ROLES) ?? [])])
      await schemas.schemaOf(role);
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
