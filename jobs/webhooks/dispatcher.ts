import type { Config } from "#config";
import type { Listener } from "#postgres/client";
import type { AsOwner } from "#postgres/database";
import { type RepeatedWork, Supervisor } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";
import { makeWebhookSender, type WebhookSender } from "./send-delivery.ts";
import { hasWebhooks, LEASE_MS, type LeasedWebhook, type WebhookBacklog, WebhookStore } from "./webhook-store.ts";
import { type WebhookCounters, WebhookWorker, type WebhookWorkerOptions } from "./webhook-worker.ts";

type DispatcherOptions = Omit<WebhookWorkerOptions, "store" | "counters" | "send" | "report"> & {
  readonly asOwner: AsOwner;
  readonly listener: Listener;
  readonly sender: WebhookSender;
  readonly supervisor?: Supervisor;
  readonly log: Pick<Logger, "info" | "warn">;
};

type WebhookDependencies = Omit<DispatcherOptions, "sender" | "config"> & { readonly config: Config };

/** Starts sending changes to webhooks. Returns null if the database has no webhooks that this login may process. */
export async function startWebhooks(dependencies: WebhookDependencies): Promise<WebhookDispatcher | null> {
  const { config, asOwner } = dependencies;
  if (!config.sendsWebhooks || !(await hasWebhooks(asOwner))) return null;
  const sender = makeWebhookSender({ network: config.webhookNetwork });
  const dispatcher = new WebhookDispatcher({ ...dependencies, sender });
  dispatcher.start();
  return dispatcher;
}

const CHANNEL = "webhooks";
const RENEWAL_MS = 3_000;
/** The margin after the end of a lease, so that it has ended. */
const EXPIRY_MARGIN_MS = 20;
/**
 * The interval at which webhooks are read while none is enabled. Changes of webhooks are notified; this finds those whose
 * notification was lost.
 */
const IDLE_MS = 60_000;
const MAINTENANCE_MS = 60_000;
/** The margin by which a request ends before another process may send the next one of its key. */
const LEASE_MARGIN_MS = 1_000;

/** Leases webhooks, so that each is sent by one process, and starts a worker for each. */
export class WebhookDispatcher {
  readonly counters: WebhookCounters = { delivered: 0, failed: 0, dead: 0, hidden: 0 };
  readonly #options: DispatcherOptions;
  readonly #store: WebhookStore;
  readonly #workers = new Map<string, WebhookWorker>();
  readonly #supervisor: Supervisor;
  #renewal: RepeatedWork | null = null;
  #maintenance: RepeatedWork | null = null;
  #removeListeners: readonly (() => void)[] = [];
  #closing: Promise<void> | null = null;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#store = new WebhookStore(options.asOwner);
    this.#supervisor = options.supervisor ?? new Supervisor(options);
  }

  start(): void {
    const { listener, log } = this.#options;
    // Maintenance runs separately: a backlog that cannot be cleaned must not keep changes from being sent.
    this.#maintenance = this.#supervisor.repeat("webhook maintenance", () => this.#maintain(), {
      pauseMs: MAINTENANCE_MS,
    });
    this.#renewal = this.#supervisor.repeat("webhooks", () => this.#renew(), {
      pauseMs: RENEWAL_MS,
      timeoutMs: LEASE_MS,
    });
    const renew = () => this.#renewal?.soon();
    this.#removeListeners = [listener.onGap(renew)];
    listener.listen(CHANNEL, renew).then(
      (stop) => {
        this.#removeListeners = [...this.#removeListeners, stop];
      },
      (error) => {
        if (!this.#closing) log.warn({ err: error }, "changes of webhooks are noticed late");
      },
    );
  }

  readBacklog(): Promise<WebhookBacklog> {
    return this.#store.readBacklog();
  }

  /** Lets requests finish for this time. Only the first call has an effect. */
  close(milliseconds: number): Promise<void> {
    this.#closing ??= this.#close(milliseconds);
    return this.#closing;
  }

  async #close(milliseconds: number): Promise<void> {
    for (const remove of this.#removeListeners) remove();
    await Promise.all([...this.#workers.values()].map((worker) => worker.stop(milliseconds)));
    await Promise.all([this.#renewal?.close(), this.#maintenance?.close()]);
    // If this fails, the leases expire.
    await this.#store.release(null).catch(() => {});
    await this.#options.sender.close();
  }

  /** Resolves with the pause until the next renewal. */
  async #renew(): Promise<number> {
    const leaseEnds = performance.now() + LEASE_MS - LEASE_MARGIN_MS;
    const { enabled, webhooks, nextExpiryMs } = await this.#store.lease();
    this.#assign(webhooks, leaseEnds);
    // The workers need their leases while it closes.
    if (enabled === 0 && !this.#closing) return IDLE_MS;
    return Math.min(RENEWAL_MS, Math.max(0, nextExpiryMs) + EXPIRY_MARGIN_MS);
  }

  async #maintain(): Promise<undefined> {
    await this.#store.maintain();
  }

  #assign(webhooks: readonly LeasedWebhook[], leaseEnds: number): void {
    const leased = new Map(webhooks.map((webhook) => [webhook.id, webhook]));
    for (const [id, worker] of this.#workers) {
      const webhook = leased.get(id);
      if (webhook) worker.extendLease(leaseEnds);
      if (!webhook || JSON.stringify(webhook) !== JSON.stringify(worker.webhook))
        void worker.stop(worker.webhook.timeoutMs);
    }
    if (this.#closing) return;
    for (const [id, webhook] of leased) if (!this.#workers.has(id)) this.#begin(id, webhook, leaseEnds);
  }

  /** Starts a worker. A changed webhook begins again, with its new settings, when the requests with the previous ones are finished. */
  #begin(id: string, webhook: LeasedWebhook, leaseEnds: number): void {
    const report = this.#supervisor.report("webhook deliveries");
    const worker = new WebhookWorker(webhook, leaseEnds, {
      ...this.#options,
      report,
      send: this.#options.sender.send,
      store: this.#store,
      counters: this.counters,
    });
    this.#workers.set(id, worker);
    void worker.finished.then(() => {
      report.close();
      this.#workers.delete(id);
      // A failed worker begins again with the next renewal.
      if (!this.#closing && report.isRunning) this.#renewal?.soon();
    });
  }
}
