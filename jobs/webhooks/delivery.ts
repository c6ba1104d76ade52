/** The part of a row of `api.webhooks` that sending needs. */
export type Webhook = {
  readonly id: string;
  readonly name: string;
  readonly url: string;
  /** The secret `whsec_…`, or two of them, separated by a space, during a rotation. */
  readonly secret: string;
  readonly timeoutMs: number;
  readonly maxAttempts: number;
};

/** A row of `content_service.webhook_deliveries`, reduced to the part that the webhook's role may read. */
export type Delivery = {
  /** The header `webhook-id`, which is the same in all attempts and processes. */
  readonly id: string;
  /** The body as JSON; it is the same in all attempts while the privileges of the role are the same. */
  readonly body: string;
};

export type SendOutcome =
  | { readonly kind: "delivered" }
  /** The attempt failed; the next one follows after this time at the earliest, or after the usual back-off if it is null. */
  | { readonly kind: "retry"; readonly afterMs: number | null; readonly reason: string }
  /** The delivery was not sent, for example because of an open circuit breaker. It does not count as an attempt. */
  | { readonly kind: "postponed"; readonly afterMs: number; readonly reason: string }
  /** This process may not send to the URL. Stops the webhook, whose changes are recorded further. */
  | { readonly kind: "refused"; readonly reason: string }
  /** The receiver wants no further deliveries (410). Disables the webhook; the delivery is kept. */
  | { readonly kind: "gone"; readonly reason: string };

/** Makes one attempt. Rejects only when the signal is aborted: the outcome is then unknown, and the delivery is sent again later. */
export type SendDelivery = (delivery: Delivery, webhook: Webhook, signal: AbortSignal) => Promise<SendOutcome>;
