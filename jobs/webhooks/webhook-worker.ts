import type { CatalogKeeper } from "#catalog/loading";
import type { Config } from "#config";
import { toHttpError } from "#http";
import type { Database } from "#postgres/database";
import type { WorkReport } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";
import type { SendDelivery, SendOutcome } from "./delivery.ts";
import { readContents, readWebhookScope, sentColumns, type WebhookScope } from "./delivery-content.ts";
import { KeyQueues, keysOf } from "./key-queues.ts";
import type { FailedDelivery, LeasedWebhook, RecordedChange, WebhookStore } from "./webhook-store.ts";

/** The counts since the start of the process. */
export type WebhookCounters = { delivered: number; failed: number; dead: number; hidden: number };

export type WebhookWorkerOptions = {
  readonly store: WebhookStore;
  readonly send: SendDelivery;
  readonly database: Pick<Database, "run">;
  readonly catalog: Pick<CatalogKeeper, "current" | "reload">;
  readonly config: Pick<Config, "usersAccess" | "appSettings">;
  readonly counters: WebhookCounters;
  readonly report: WorkReport;
  readonly log: Pick<Logger, "warn">;
};

/** A change that is in memory, with its content. */
type LoadedDelivery = Pick<RecordedChange, "id" | "deliveryId" | "key" | "movedTo" | "attempts"> & {
  readonly body: string;
};

/** `item` has the keys that are blocked until the next attempt; null if the delivery is dead. */
type UnstoredFailure = FailedDelivery & { readonly item: Pick<LoadedDelivery, "key" | "movedTo"> | null };

const CONCURRENCY = 64;
const PAGE_SIZE = 500;
/** If fewer changes are loaded, the next page is read. */
const MIN_LOADED = 500;
/** The interval at which new changes are found. */
const POLL_MS = 200;
/** The time for which results are collected before they are stored, and their maximum number. */
const COLLECT_MS = 20;
const STORED_TOGETHER = 250;
/** The maximum number of keys that wait for their next attempt; above it, all others wait too. */
const MAX_BLOCKED_KEYS = 1_000;
/** The number of failures in a row to evaluate policies or filter that stops the webhook. */
const MAX_CONTENT_FAILURES = 3;
const CONTENT_RETRY_MS = 1_000;
const FIRST_RETRY_MS = 1_000;
const MAX_RETRY_MS = 3_600_000;

/**
 * Returns the time until the next attempt: it doubles with each attempt, is at most an hour, and up to a half less, so that
 * deliveries spread.
 */
function deliveryDelay(attempts: number): number {
  return Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** (attempts - 1)) * (0.5 + Math.random() / 2);
}

/** Sends the deliveries of one webhook while this process has its lease. */
export class WebhookWorker {
  readonly webhook: LeasedWebhook;
  readonly #options: WebhookWorkerOptions;
  readonly #queues = new KeyQueues<LoadedDelivery>();
  /** The ids of changes that must not be read again: they are in memory, or their result is not stored yet. */
  readonly #loaded = new Set<string>();
  /** The time at which a key is due again, by `performance.now()`. */
  readonly #blocked = new Map<string, number>();
  /** The keys that were unloaded since the request for the page that is being read. */
  readonly #unloadedKeys = new Set<string>();
  readonly #aborted = new AbortController();
  /** Resolves when sending has ended, whatever the reason. */
  readonly finished: Promise<void>;
  #doneIds: string[] = [];
  #hasDelivered = false;
  #failed: UnstoredFailure[] = [];
  /** The time at which the next page may be read, if fewer changes than a page were found. */
  #nextReadAt = 0;
  #pausedUntil = 0;
  #sending = 0;
  #contentFailures = 0;
  #leaseTimer: NodeJS.Timeout | undefined;
  #isLeaseLost = false;
  #disabling: Promise<void> | null = null;
  #isStopping = false;
  #wake: () => void = () => {};

  constructor(webhook: LeasedWebhook, leaseEnds: number, options: WebhookWorkerOptions) {
    this.webhook = webhook;
    this.#options = options;
    this.extendLease(leaseEnds);
    const { report } = options;
    const restart = (error: unknown) => {
      report.fails(error);
      this.#abort();
    };
    this.finished = report.run(() => this.#run(), restart).finally(() => clearTimeout(this.#leaseTimer));
  }

  /** `leaseEnds` is a time of `performance.now()`. Requests are aborted then, before another process sends the next ones of their keys. */
  extendLease(leaseEnds: number): void {
    clearTimeout(this.#leaseTimer);
    this.#leaseTimer = setTimeout(() => this.#loseLease(), leaseEnds - performance.now()).unref();
  }

  /** Lets requests finish for this time, and stores their results. A second call can only shorten the time. */
  async stop(milliseconds: number): Promise<void> {
    this.#isStopping = true;
    this.#wake();
    const timer = setTimeout(() => this.#abort(), milliseconds);
    await this.finished;
    clearTimeout(timer);
  }

  async #run(): Promise<void> {
    await this.#readAndStore();
    // The other process sends unstored deliveries again.
    if (!this.#isLeaseLost) await this.#storeResults().catch(() => {});
    await this.#disabling;
  }

  async #readAndStore(): Promise<void> {
    for (let isPrepared = false; !this.#isOver(); ) {
      try {
        if (!isPrepared) await this.#readDelays();
        isPrepared = true;
        await this.#storeResults();
        // A pause may have ended.
        this.#sendNext();
        if (this.#mayRead()) await this.#readPage();
        this.#options.report.runs();
        await this.#sleep(this.#pauseMs());
      } catch (error) {
        await this.#sleep(this.#options.report.fails(error));
      }
    }
  }

  /** Results are stored after a stop as long as requests are in flight. */
  #isOver(): boolean {
    if (this.#aborted.signal.aborted) return this.#sending === 0;
    return this.#isStopping && this.#sending === 0 && this.#results === 0;
  }

  #abort(): void {
    this.#isStopping = true;
    this.#aborted.abort();
    this.#wake();
  }

  #loseLease(): void {
    this.#isLeaseLost = true;
    this.#abort();
  }

  get #results(): number {
    return this.#doneIds.length + this.#failed.length;
  }

  #mayRead(): boolean {
    const now = performance.now();
    if (this.#isStopping || now < this.#pausedUntil || now < this.#nextReadAt) return false;
    if (this.#blocked.size >= MAX_BLOCKED_KEYS) {
      if (![...this.#blocked.values()].some((dueAt) => dueAt <= now)) return false;
    }
    return this.#loaded.size < MIN_LOADED;
  }

  #pauseMs(): number {
    if (this.#results >= STORED_TOGETHER) return 0;
    if (this.#results > 0) return COLLECT_MS;
    const now = performance.now();
    return Math.max(COLLECT_MS, Math.min(POLL_MS, Math.max(this.#nextReadAt, this.#pausedUntil) - now));
  }

  #sleep(milliseconds: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, milliseconds);
      this.#wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });
  }

  async #readDelays(): Promise<void> {
    const { store } = this.#options;
    for (const { key, movedTo, delayMs } of await store.readDelayed(this.webhook.id))
      this.#block({ key, movedTo }, delayMs);
  }

  async #readPage(): Promise<void> {
    const startedAt = performance.now();
    for (const [key, dueAt] of this.#blocked) if (dueAt <= startedAt) this.#blocked.delete(key);
    const scope = this.#readScope();
    if (!scope) return;
    this.#unloadedKeys.clear();
    const changes = await this.#options.store.readPage(this.webhook.id, {
      loadedIds: [...this.#loaded],
      blockedKeys: [...this.#blocked.keys()],
      columns: sentColumns(scope),
      limit: PAGE_SIZE,
    });
    if (changes.length > 0 && !(await this.#load(changes, scope))) return;
    this.#nextReadAt = changes.length > 0 ? 0 : startedAt + POLL_MS;
  }

  #readScope(): WebhookScope | null {
    const { catalog, config } = this.#options;
    try {
      return readWebhookScope(this.webhook, { catalog: catalog.current(), config });
    } catch (error) {
      this.#onContentFailure(error);
      return null;
    }
  }

  /** Returns false if policies or filter could not be evaluated; nothing is sent then. */
  async #load(changes: readonly RecordedChange[], scope: WebhookScope): Promise<boolean> {
    try {
      const contents = await readContents(changes, scope, this.#options.database);
      this.#contentFailures = 0;
      for (const [at, change] of changes.entries()) {
        if (this.#followsUnloaded(change)) continue;
        const { id, deliveryId, key, movedTo, attempts } = change;
        const content = contents[at]!;
        this.#loaded.add(id);
        if (content.kind === "body") this.#queues.add({ id, deliveryId, key, movedTo, attempts, body: content.body });
        else if (content.kind === "hidden") this.#addDone(id, "hidden");
        else this.#addDead({ id, attempts }, content.reason);
      }
      this.#sendNext();
      return true;
    } catch (error) {
      if (toHttpError(error).status === 503) throw error;
      this.#onContentFailure(error);
      return false;
    }
  }

  /** True if an earlier change of its keys was unloaded while this one was read: it is read again, after that one. */
  #followsUnloaded(change: RecordedChange): boolean {
    const keys = keysOf(change);
    if (!keys.some((key) => this.#unloadedKeys.has(key))) return false;
    for (const key of keys) this.#unloadedKeys.add(key);
    return true;
  }

  /**
   * The catalogue may be behind the database, the table renamed, or a statement too slow: the evaluation is retried before
   * the webhook is stopped, each time with a catalogue that was read after the failure.
   */
  #onContentFailure(error: unknown): void {
    const { catalog, store } = this.#options;
    this.#contentFailures++;
    if (this.#contentFailures >= MAX_CONTENT_FAILURES) {
      this.#disable((error as Error).message, { ends: false });
      return;
    }
    this.#nextReadAt = Number.POSITIVE_INFINITY;
    void Promise.allSettled([catalog.reload(), store.maintain()]).then(([reload]) => {
      if (reload.status === "rejected") this.#contentFailures = 0;
      this.#nextReadAt = performance.now() + CONTENT_RETRY_MS;
    });
  }

  #disable(reason: string, how: { readonly ends: boolean }): void {
    const { store, log } = this.#options;
    log.warn({ webhook: this.webhook.name, reason }, how.ends ? "a webhook was disabled" : "a webhook was stopped");
    this.#isStopping = true;
    this.#disabling ??= store.disable(this.webhook.id, reason, how).catch((error) => {
      log.warn({ err: error, webhook: this.webhook.name }, "a webhook could not be disabled");
    });
  }

  #sendNext(): void {
    while (!this.#isStopping && this.#sending < CONCURRENCY && performance.now() >= this.#pausedUntil) {
      const item = this.#queues.next();
      if (!item) return;
      void this.#send(item);
    }
  }

  async #send(item: LoadedDelivery): Promise<void> {
    this.#sending++;
    try {
      const delivery = { id: item.deliveryId, body: item.body };
      this.#onOutcome(item, await this.#options.send(delivery, this.webhook, this.#aborted.signal));
    } catch {
      // If the request was aborted, its delivery is unknown, so the next holder of the lease sends it again.
    } finally {
      this.#sending--;
      this.#sendNext();
      if (this.#results >= STORED_TOGETHER || this.#sending === 0) this.#wake();
    }
  }

  #onOutcome(item: LoadedDelivery, outcome: SendOutcome): void {
    switch (outcome.kind) {
      case "delivered":
        this.#pausedUntil = 0;
        this.#hasDelivered = true;
        this.#addDone(item.id, "delivered");
        this.#queues.complete(item);
        break;
      case "retry":
        this.#onFailure(item, outcome);
        break;
      case "postponed":
        this.#pausedUntil = performance.now() + outcome.afterMs;
        this.#unload(item);
        break;
      case "refused":
      case "gone":
        this.#unload(item);
        this.#disable(outcome.reason, { ends: outcome.kind === "gone" });
    }
  }

  #onFailure(item: LoadedDelivery, { afterMs, reason }: Extract<SendOutcome, { readonly kind: "retry" }>): void {
    const attempts = item.attempts + 1;
    this.#options.counters.failed++;
    if (attempts >= this.webhook.maxAttempts) {
      this.#addDead({ id: item.id, attempts }, reason);
      this.#queues.complete(item);
      return;
    }
    const delayMs = afterMs ?? deliveryDelay(attempts);
    // The change is not read again until this is stored, so the next ones of its keys must not be read either.
    this.#block(item, Number.POSITIVE_INFINITY);
    this.#unload(item);
    this.#loaded.add(item.id);
    this.#failed.push({ id: item.id, attempts, delayMs, reason, item });
  }

  /** Unloads the changes, which are read again from the first change of the key on. */
  #unload(item: LoadedDelivery): void {
    for (const each of this.#queues.removeFrom(item)) {
      this.#loaded.delete(each.id);
      for (const key of keysOf(each)) this.#unloadedKeys.add(key);
    }
  }

  #block(item: Pick<LoadedDelivery, "key" | "movedTo">, delayMs: number): void {
    for (const key of keysOf(item)) this.#blocked.set(key, performance.now() + delayMs);
  }

  #addDone(id: string, counter: "delivered" | "hidden"): void {
    this.#options.counters[counter]++;
    this.#doneIds.push(id);
  }

  #addDead({ id, attempts }: Pick<FailedDelivery, "id" | "attempts">, reason: string): void {
    this.#options.counters.dead++;
    this.#failed.push({ id, attempts, delayMs: null, reason, item: null });
  }

  async #storeResults(): Promise<void> {
    if (this.#results === 0) return;
    const [doneIds, hasDelivered, failed] = [this.#doneIds, this.#hasDelivered, this.#failed];
    this.#doneIds = [];
    this.#hasDelivered = false;
    this.#failed = [];
    try {
      const results = { doneIds, hasDelivered, failed };
      if (!(await this.#options.store.complete(this.webhook.id, results))) this.#loseLease();
    } catch (error) {
      this.#hasDelivered ||= hasDelivered;
      this.#doneIds.unshift(...doneIds);
      this.#failed.unshift(...failed);
      throw error;
    }
    for (const id of doneIds) this.#loaded.delete(id);
    for (const { id, item, delayMs } of failed) {
      this.#loaded.delete(id);
      if (item) this.#block(item, delayMs ?? 0);
    }
  }
}
