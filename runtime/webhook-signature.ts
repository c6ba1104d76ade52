import { createHmac, createSecretKey, type KeyObject } from "node:crypto";

const PREFIX = "whsec_";

/** The keys of a webhook's secret: two, separated by a space, while receivers change from one to the other. */
export function parseWebhookSecret(secret: string): readonly KeyObject[] {
  return secret.split(" ").map((part) => createSecretKey(part.slice(PREFIX.length), "base64"));
}

/** Headers of the specification "Standard Webhooks", with a signature of each key. To sign with the bytes of a key takes six times as long. */
export function signWebhook(id: string, body: string, keys: readonly KeyObject[]): Record<string, string> {
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signatures = keys.map((key) => {
    const signature = createHmac("sha256", key).update(`${id}.${timestamp}.${body}`).digest("base64");
    return `v1,${signature}`;
  });
  return { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signatures.join(" ") };
}
