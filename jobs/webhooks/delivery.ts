/** What is needed of a row of `api.webhooks` to send to it. */
export type Webhook = {
  readonly id: string;
  readonly name: string;
  readonly url: string;
  /** `whsec_…`; two while it is rotated, separated by a space. */
  readonly secret: string;
  readonly timeoutMs: number;
  readonly maxAttempts: number;
};

/** A row of `content_service.webhook_deliveries`, reduced to what the webhook's role may read. */
export type Delivery = {
  /** The same in all attempts, in all processes: `webhook-id`. */
  readonly id: string;
  /** JSON; the same in all attempts as long as the privileges of the role are the same. */
  readonly body: string;
};

export type SendOutcome =
  | { readonly kind: "delivered" }
  /** Failed; attempted again after this time at the earliest, or after the usual back-off if it is null. */
  | { readonly kind: "retry"; readonly afterMs: number | null; readonly reason: string }
  /** Not sent, as by an open circuit breaker. It does not count as an attempt. */
  | { readonly kind: "postponed"; readonly afterMs: number; readonly reason: string }
  /** The receiver refuses further deliveries (410), or its URL is not allowed. Disables the webhook; the delivery is kept. */
  | { readonly kind: "refused"; readonly reason: string };

/** Makes one attempt. Rejects only when the signal is aborted: then the outcome is unknown, and the delivery is sent again later. */
export type SendDelivery = (delivery: Delivery, webhook: Webhook, signal: AbortSignal) => Promise<SendOutcome>;
