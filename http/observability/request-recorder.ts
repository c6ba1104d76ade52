import { createHash } from "node:crypto";
import type { UsedObjects } from "#catalog";
import type { Config } from "#config";
import { type AsOwner, makeOwnerFunction } from "#postgres/database";
import { RecentMap } from "#runtime";
import type { RepeatedWork, Supervisor } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";

/** The stored form of a request, without values. */
export type RequestOutline = UsedObjects & {
  readonly interface: "table" | "resource" | "graphql" | "realtime";
  readonly role: string;
  /** The text for people. */
  readonly request: string;
  /** The endpoint of a resource interface: `GET /api/v1/items/{key}`. */
  readonly endpoint?: string;
  /** True if the interface chose the columns of the response: all existing ones. */
  readonly selectsDefault?: true;
  /** The outline of the intent, for a request that the planner plans. */
  readonly intent?: Readonly<Record<string, unknown>>;
  /** The text of a GraphQL operation, with variables in place of literals. */
  readonly operation?: string;
};

/** All requests of an interface whose shapes are not recorded. */
export type OtherRequests = Pick<RequestOutline, "interface"> & { readonly others: true };

/** A shape as JSON. */
type RecordedShape = { readonly interface: RequestOutline["interface"]; readonly json: string };

const MAX_SHAPE_CHARACTERS = 20_000;
const MAX_CHARACTERS = 4_000_000;
const REPORT_INTERVAL_MS = 60_000;
const RECORD_REQUESTS = "select content_service.record_requests($1, $2)";

type RecorderDependencies = {
  readonly config: Pick<Config, "recordRequests">;
  readonly asOwner: AsOwner;
  readonly supervisor: Supervisor;
  readonly log: Pick<Logger, "warn">;
};

/**
 * Counts requests by shape. Once a minute, Postgres adds up the reports of all processes, so that `migrate` of another
 * process can compare with them. A shape is described once for each plan: the other requests cost three lookups. Requests
 * that are not recorded are counted as others of their interface.
 */
export class RequestRecorder {
  /** The digests of the shapes, by variant; null for a request that is counted as others. */
  readonly #digests = new WeakMap<object, Map<string, string | null>>();
  readonly #shapes = new RecentMap<string, RecordedShape>(MAX_CHARACTERS, (_, { json }) => json.length);
  /** The counters by digest. */
  readonly #counters = new Map<string, RecordedShape & { requests: number }>();
  #countedCharacters = 0;
  readonly #others = new Map<RequestOutline["interface"], number>();
  /** The kinds of errors that were logged since a report succeeded. */
  readonly #warned = new Set<string>();
  #log: Pick<Logger, "warn"> | null = null;
  #record: ((values: readonly unknown[]) => Promise<unknown>) | null = null;
  #reports: RepeatedWork | null = null;

  /** Starts recording; nothing is recorded before. Returns a function that ends it. */
  start({ config, asOwner, supervisor, log }: RecorderDependencies): () => Promise<void> {
    if (!config.recordRequests) return async () => {};
    this.#log = log;
    this.#record = makeOwnerFunction({
      asOwner,
      text: RECORD_REQUESTS,
      log,
      warning: "requests are not recorded for migrations: that needs the owner's connection (OWNER_DATABASE_URL)",
    });
    const reports = { pauseMs: REPORT_INTERVAL_MS, firstPauseMs: REPORT_INTERVAL_MS };
    this.#reports = supervisor.repeat("recorded requests", () => this.#report(), reports);
    return () => this.#close();
  }

  /** `plan` is the same object for all requests of one shape, apart from the variant: the role, or another difference. */
  count(name: RequestOutline["interface"], plan: object, variant: string, describe: () => RequestOutline): void {
    if (this.#record === null) return;
    const counter = this.#counterOf(plan, variant, describe);
    if (counter === null) this.#others.set(name, (this.#others.get(name) ?? 0) + 1);
    else counter.requests++;
  }

  /** Reports the last counts. */
  async #close(): Promise<void> {
    await this.#reports?.close();
    await this.#report();
    this.#record = null;
  }

  /** Recording continues after lost counts: no client depends on it. The counts are added to the others of the next report. */
  async #report(): Promise<undefined> {
    const counters = [...this.#counters.values()];
    const others = [...this.#others];
    this.#counters.clear();
    this.#countedCharacters = 0;
    this.#others.clear();
    if (counters.length + others.length === 0) return;
    const shapes = [...counters.map(({ json }) => json), ...others.map(([name]) => JSON.stringify(toOthers(name)))];
    const counts = [...counters.map(({ requests }) => requests), ...others.map(([, requests]) => requests)];
    try {
      await this.#record?.([shapes, counts]);
      this.#warned.clear();
    } catch (error) {
      for (const { interface: name, requests } of counters) others.push([name, requests]);
      for (const [name, requests] of others) this.#others.set(name, (this.#others.get(name) ?? 0) + requests);
      this.#warn(error as Error & { readonly code?: string });
    }
  }

  #warn(error: Error & { readonly code?: string }): void {
    const kind = error.code ?? error.name;
    if (this.#warned.has(kind)) return;
    this.#warned.add(kind);
    this.#log?.warn({ err: error }, "requests are not recorded for migrations; trying again each minute");
  }

  /** Returns null for a request that is counted as others. No request fails because it cannot be described. */
  #counterOf(plan: object, variant: string, describe: () => RequestOutline): { requests: number } | null {
    const variants = this.#digests.get(plan) ?? new Map<string, string | null>();
    const known = variants.get(variant);
    if (known === null) return null;
    const existing = known === undefined ? undefined : this.#counters.get(known);
    if (existing) return existing;
    const digest = known !== undefined && this.#shapes.has(known) ? known : this.#describe(describe);
    this.#digests.set(plan, variants.set(variant, digest));
    return digest === null ? null : this.#open(digest);
  }

  /** Returns the digest of the request's shape, which is kept. */
  #describe(describe: () => RequestOutline): string | null {
    try {
      const shape = describe();
      const json = JSON.stringify(shape);
      if (json.length > MAX_SHAPE_CHARACTERS) return null;
      const digest = createHash("sha256").update(json).digest("base64");
      this.#shapes.set(digest, { interface: shape.interface, json });
      return digest;
    } catch {
      return null;
    }
  }

  #open(digest: string): { requests: number } | null {
    const existing = this.#counters.get(digest);
    if (existing) return existing;
    const { json, interface: name } = this.#shapes.get(digest)!;
    if (this.#countedCharacters + json.length > MAX_CHARACTERS) return null;
    this.#countedCharacters += json.length;
    const counter = { interface: name, json, requests: 0 };
    this.#counters.set(digest, counter);
    return counter;
  }
}

function toOthers(name: RequestOutline["interface"]): OtherRequests {
  return { interface: name, others: true };
}
