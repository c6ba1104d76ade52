import { retryDelay } from "../../engine/concurrency/retry-delay.ts";
import type { Config } from "../../engine/config/config.ts";
import type { AsOwner } from "../../engine/database/owner-pool.ts";
import type { Listener } from "../../engine/pg-client/listen.ts";
import { makeWebhookSender, type WebhookSender } from "./send-delivery.ts";
import { hasWebhooks, LEASE_MS, type LeasedWebhook, type WebhookBacklog, WebhookStore } from "./webhook-store.ts";
import { type WebhookCounters, WebhookWorker, type WebhookWorkerOptions } from "./webhook-worker.ts";

type DispatcherOptions = Omit<WebhookWorkerOptions, "store" | "counters" | "send"> & {
  readonly asOwner: AsOwner;
  readonly listener: Listener;
  readonly sender: WebhookSender;
};

type WebhookDependencies = Omit<DispatcherOptions, "sender" | "config"> & { readonly config: Config };

/** Starts sending changes to webhooks. Null if the database has no webhooks that this login may process. */
export async function startWebhooks(dependencies: WebhookDependencies): Promise<WebhookDispatcher | null> {
  const { config, asOwner } = dependencies;
  if (!config.sendsWebhooks || !(await hasWebhooks(asOwner))) return null;
  const sender = makeWebhookSender({ network: config.webhookNetwork });
  const dispatcher = new WebhookDispatcher({ ...dependencies, sender });
  dispatcher.start();
  return dispatcher;
}

const CHANNEL = "webhooks";
const RENEWAL_MS = 5_000;
/** While no webhook is enabled. Changes of webhooks are notified; this is for notifications that were lost. */
const IDLE_MS = 60_000;
const MAINTENANCE_MS = 60_000;
/** A request ends before another process may send the next one of its key. */
const LEASE_MARGIN_MS = 1_000;

/** Leases webhooks, so that each is sent by one process, and starts a worker for each. */
export class WebhookDispatcher {
  readonly counters: WebhookCounters = { delivered: 0, failed: 0, dead: 0, hidden: 0 };
  readonly #options: DispatcherOptions;
  readonly #store: WebhookStore;
  readonly #workers = new Map<string, WebhookWorker>();
  #timer: NodeJS.Timeout | undefined;
  #failures = 0;
  #maintainedAt = -MAINTENANCE_MS;
  #renewal: Promise<void> | null = null;
  #isRenewedAgain = false;
  #removeListeners: readonly (() => void)[] = [];
  #closing: Promise<void> | null = null;

  constructor(options: DispatcherOptions) {
    this.#options = options;
    this.#store = new WebhookStore(options.asOwner);
  }

  start(): void {
    const { listener, log } = this.#options;
    const renew = () => this.#renewSoon();
    this.#removeListeners = [listener.onGap(renew)];
    listener.listen(CHANNEL, renew).then(
      (stop) => {
        this.#removeListeners = [...this.#removeListeners, stop];
      },
      (error) => {
        if (!this.#closing) log.warn({ err: error }, "changes of webhooks are noticed late");
      },
    );
    this.#renewSoon();
  }

  readBacklog(): Promise<WebhookBacklog> {
    return this.#store.readBacklog();
  }

  /** Lets requests finish for this long. Only the first call has an effect. */
  close(milliseconds: number): Promise<void> {
    this.#closing ??= this.#close(milliseconds);
    return this.#closing;
  }

  async #close(milliseconds: number): Promise<void> {
    for (const remove of this.#removeListeners) remove();
    clearTimeout(this.#timer);
    const renewal = setInterval(() => this.#renewSoon(), RENEWAL_MS);
    await Promise.all([...this.#workers.values()].map((worker) => worker.stop(milliseconds)));
    clearInterval(renewal);
    await this.#renewal;
    clearTimeout(this.#timer);
    // Otherwise the leases expire.
    await this.#store.release(null).catch(() => {});
    await this.#options.sender.close();
  }

  #renewSoon(): void {
    if (this.#renewal) {
      this.#isRenewedAgain = true;
      return;
    }
    clearTimeout(this.#timer);
    this.#isRenewedAgain = false;
    this.#renewal = this.#renew().finally(() => {
      this.#renewal = null;
      if (this.#isRenewedAgain) this.#renewSoon();
    });
  }

  async #renew(): Promise<void> {
    let pauseMs = RENEWAL_MS;
    try {
      await this.#maintain();
      const leaseEnds = performance.now() + LEASE_MS - LEASE_MARGIN_MS;
      const { enabled, webhooks } = await this.#store.lease();
      this.#failures = 0;
      this.#assign(webhooks, leaseEnds);
      if (enabled === 0) pauseMs = IDLE_MS;
    } catch (error) {
      this.#failures++;
      if (this.#failures === 1) this.#options.log.warn({ err: error }, "webhooks cannot be leased; trying again");
      pauseMs = retryDelay(this.#failures);
    }
    if (!this.#closing) this.#timer = setTimeout(() => this.#renewSoon(), pauseMs).unref();
  }

  async #maintain(): Promise<void> {
    if (performance.now() < this.#maintainedAt + MAINTENANCE_MS) return;
    await this.#store.maintain();
    this.#maintainedAt = performance.now();
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

  /** A changed webhook begins again, with its new settings, when the requests with the former ones are finished. */
  #begin(id: string, webhook: LeasedWebhook, leaseEnds: number): void {
    const worker = new WebhookWorker(webhook, leaseEnds, {
      ...this.#options,
      send: this.#options.sender.send,
      store: this.#store,
      counters: this.counters,
    });
    this.#workers.set(id, worker);
    void worker.finished.then(() => {
      this.#workers.delete(id);
      if (!this.#closing) this.#renewSoon();
    });
  }
}
