export type { Webhook } from "./delivery.ts";
export { startWebhooks, WebhookDispatcher } from "./dispatcher.ts";
export type { WebhookCounters } from "./webhook-worker.ts";
