import { createHash } from "node:crypto";
import type { Config } from "#config";
import type { IntentOutline, UsedObjects } from "#planner";
import { type AsOwner, makeOwnerFunction } from "#postgres/database";
import { RecentMap } from "#runtime";
import type { RepeatedWork, Supervisor } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";

/** A request without values, as it is stored. */
export type RequestShape = UsedObjects & {
  readonly interface: "table" | "resource" | "graphql" | "realtime";
  readonly role: string;
  /** For people. */
  readonly request: string;
  /** Of the resource interface: `GET /api/v1/items/{key}`. */
  readonly endpoint?: string;
  /** The interface chose the columns of the response: those that there are. */
  readonly selectsDefault?: true;
  /** Of a request that the planner plans. */
  readonly intent?: IntentOutline;
  /** Of GraphQL: its text, with variables in place of literals. */
  readonly operation?: string;
};

type ShapeCounter = { readonly id: Buffer; readonly json: string; requests: number };

const MAX_SHAPES = 2_000;
const MAX_SHAPE_CHARACTERS = 20_000;
const REPORT_INTERVAL_MS = 60_000;
const RECORD_REQUESTS = "select content_service.record_requests($1, $2, $3)";

type RecorderDependencies = {
  readonly config: Pick<Config, "recordRequests">;
  readonly asOwner: AsOwner;
  readonly supervisor: Supervisor;
  readonly log: Pick<Logger, "warn">;
};

/**
 * Counts requests by shape. Postgres adds up what all processes report once a minute, so that `migrate` of another process can compare
 * with it. A shape is described once for each plan: the other requests cost two lookups.
 */
export class RequestRecorder {
  readonly #byPlan = new WeakMap<object, Map<string, ShapeCounter | null>>();
  readonly #byId = new RecentMap<string, ShapeCounter>(MAX_SHAPES);
  readonly #unreported = new Set<ShapeCounter>();
  #record: ((values: readonly unknown[]) => Promise<unknown>) | null = null;
  #reports: RepeatedWork | null = null;

  /** Until then nothing is recorded. Returns what ends it. */
  start({ config, asOwner, supervisor, log }: RecorderDependencies): () => Promise<void> {
    if (!config.recordRequests) return async () => {};
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

  /** `plan` is the same object for requests of one shape, apart from the variant: the role, or what else differs. */
  count(plan: object, variant: string, describe: () => RequestShape | null): void {
    if (this.#record === null) return;
    const counter = this.#counterOf(plan, variant, describe);
    if (counter === null) return;
    if (counter.requests === 0) {
      if (this.#unreported.size >= MAX_SHAPES) return;
      this.#unreported.add(counter);
    }
    counter.requests++;
  }

  /** Reports what was counted last. */
  async #close(): Promise<void> {
    await this.#reports?.close();
    await this.#report().catch(() => {});
    this.#record = null;
  }

  async #report(): Promise<undefined> {
    const counters = [...this.#unreported];
    this.#unreported.clear();
    const counts = counters.map(({ requests }) => requests);
    // Counts that cannot be reported are lost: a part of an hour is no reason to keep them.
    for (const counter of counters) counter.requests = 0;
    if (counters.length > 0)
      await this.#record?.([counters.map(({ id }) => id), counters.map(({ json }) => json), counts]);
  }

  #counterOf(plan: object, variant: string, describe: () => RequestShape | null): ShapeCounter | null {
    const variants = this.#byPlan.get(plan) ?? new Map<string, ShapeCounter | null>();
    const known = variants.get(variant);
    if (known !== undefined) return known;
    const found = this.#find(describe);
    this.#byPlan.set(plan, variants.set(variant, found));
    return found;
  }

  /** Null: it is not recorded. No request fails because it cannot be described. */
  #find(describe: () => RequestShape | null): ShapeCounter | null {
    try {
      const json = JSON.stringify(describe());
      if (json === "null" || json.length > MAX_SHAPE_CHARACTERS) return null;
      const id = createHash("sha256").update(json).digest();
      const key = id.toString("base64");
      const existing = this.#byId.get(key);
      if (existing) return existing;
      const made = { id, json, requests: 0 };
      this.#byId.set(key, made);
      return made;
    } catch {
      return null;
    }
  }
}
