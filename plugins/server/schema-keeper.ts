import { setTimeout as sleep } from "node:timers/promises";
import type { CacheHits } from "../../engine/cache/recent-map.ts";
import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { CatalogRefresh } from "../../engine/catalog/catalog-keeper.ts";
import { Coalescer } from "../../engine/concurrency/coalescer.ts";
import { unavailable } from "../../engine/errors.ts";
import type { Logger } from "../../engine/output/log.ts";
import type { OmittedObject } from "../omitted-objects.ts";
import type { DocumentLimits } from "./document-size.ts";
import { buildServableSchema, isConnectionError, type KnownBuildFaults } from "./resilient-build.ts";
import { RoleSchemas, type ServedSchema } from "./role-schemas.ts";

export type SchemaKeeperOptions = {
  readonly preset: () => GraphileConfig.Preset;
  readonly catalog: () => Catalog;
  readonly catchUp: CatalogRefresh;
  readonly anonRole: string;
  readonly limits: DocumentLimits;
  /** Of documents that were read before. */
  readonly hits?: CacheHits;
  /** Called when a document does not fit the schema, which may have changed a moment ago. */
  readonly onInvalid?: () => void;
  readonly log: Pick<Logger, "info" | "warn" | "error">;
};

/** A script of DDL tells of each statement; what comes within this time is one change. */
const DEBOUNCE_MS = 50;
/** Of so many roles the schema is made before it is served. */
const MAX_PREPARED_ROLES = 4;
/** How long a start waits for the first schema. That of thousands of tables takes longer, and the rest can be served without it. */
const FIRST_BUILD_WAIT_MS = 10_000;

/** Builds the schema, and builds it anew when the database has changed; the old one serves until the new one is there. */
export class SchemaKeeper {
  readonly #options: SchemaKeeperOptions;
  readonly #builds: Coalescer;
  #served: RoleSchemas | null = null;
  #fault: Error | null = null;
  #leftOut: readonly OmittedObject[] = [];
  readonly #knownFaults: KnownBuildFaults = new Map();
  readonly #closing = new AbortController();

  constructor(options: SchemaKeeperOptions) {
    this.#options = options;
    this.#builds = new Coalescer(() => this.buildAndLog(), DEBOUNCE_MS);
  }

  /** Resolves when there has been a first attempt, however it went, or when that takes too long. */
  async start(patienceMs = FIRST_BUILD_WAIT_MS): Promise<void> {
    const attempt = this.#builds.request(0).catch(() => {});
    await Promise.race([attempt, sleep(patienceMs, undefined, { ref: false })]);
    if (this.isAwaited)
      this.#options.log.info("the GraphQL schema is still being built; the service starts without it");
  }

  /** To be called when the database has changed. */
  rebuild(): void {
    void this.#builds.request();
  }

  /** The schema as this role sees it. */
  current(role: string): ServedSchema | Promise<ServedSchema> {
    if (this.isAwaited) throw unavailable("GraphQL is not served yet: its schema is still being built.");
    if (!this.#served) {
      throw unavailable("GraphQL is not served: its schema could not be made of this database. The log says why.");
    }
    return this.#served.schemaOf(role);
  }

  /** Another object for each schema that is built. */
  get version(): object | null {
    return this.#served;
  }

  /** Resolves with whether a newer schema is served than that one, which the database did not agree with. */
  async isNewerThan(edition: object | null): Promise<boolean> {
    const served = this.#served;
    if (served === null || served !== edition) return served !== null;
    if (!(await this.#options.catchUp(served.catalog))) return false;
    await this.#builds.request().catch(() => {});
    return this.#served !== served;
  }

  /** The first attempt goes on. */
  get isAwaited(): boolean {
    return this.#served === null && this.#fault === null;
  }

  get isServing(): boolean {
    return this.#served !== null;
  }

  /** Why what is served may be out of date, or cannot be served at all. */
  get fault(): string | null {
    return this.#fault?.message ?? null;
  }

  /** What callers may use and the schema that is served does not have. */
  get omitted(): readonly OmittedObject[] {
    return this.#leftOut;
  }

  /** A build that is going on ends at its next turn, and is not waited for. */
  close(): void {
    this.#closing.abort();
    void this.#builds.close();
  }

  async buildAndLog(): Promise<void> {
    const { log } = this.#options;
    const startedAt = performance.now();
    try {
      this.#served = await this.#build();
      this.#fault = null;
      log.info({ ms: Math.round(performance.now() - startedAt) }, "the GraphQL schema was built");
    } catch (error) {
      if (this.#closing.signal.aborted) return;
      this.logFault(error as Error);
      // Then it is tried again; what is wrong with the schema itself stays wrong until it changes.
      if (isConnectionError(error)) throw error;
    }
  }

  async #build(): Promise<RoleSchemas> {
    const { preset, catalog, anonRole, limits, hits, onInvalid } = this.#options;
    const built = await buildServableSchema(preset(), this.#closing.signal, this.#knownFaults);
    const { schema, resolvedPreset, omitted: leftOut } = built;
    this.logOmitted(leftOut);
    const made = { schema, resolvedPreset, catalog: catalog() };
    const schemas = new RoleSchemas({ ...made, anonRole, limits, hits, onInvalid });
    // So that the first operations do not wait for them.
    for (const role of [anonRole, ...(this.#served?.firstRoles(MAX_PREPARED_ROLES) ?? [])])
      await schemas.schemaOf(role);
    return schemas;
  }

  logOmitted(leftOut: readonly OmittedObject[]): void {
    const isNews = JSON.stringify(leftOut) !== JSON.stringify(this.#leftOut);
    this.#leftOut = leftOut;
    if (!isNews || leftOut.length === 0) return;
    const objects = leftOut.map(({ object, reason }) => `${object}: ${reason}`);
    this.#options.log.warn(
      { omitted: objects },
      "GraphQL is served without objects of the database; npm run doctor says more",
    );
  }

  logFault(error: Error): void {
    const { log } = this.#options;
    const isNews = this.#fault?.message !== error.message;
    this.#fault = error;
    if (!isNews) return;
    if (this.#served) log.warn({ err: error }, "the GraphQL schema cannot be built; the old one stays");
    else log.error({ err: error }, "the GraphQL schema cannot be built, so GraphQL is not served");
  }
}
