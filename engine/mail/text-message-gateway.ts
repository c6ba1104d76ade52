import { createHmac, randomUUID } from "node:crypto";
import type { Config } from "../config/config.ts";

/** A code for a phone number, with what is known of the user. */
export type TextMessage = {
  /** The number without the plus sign. */
  readonly phone: string;
  readonly code: string;
  readonly user: object;
};

export type TextMessageGateway = { send(message: TextMessage): Promise<void>; close(): void };

const TIMEOUT_MS = 5_000;

/** Sends text messages by a webhook, in the form of Supabase's "Send SMS" hook; null without one. */
export function makeTextMessageGateway({
  smsWebhookUrl: url,
  smsWebhookSecret: secret,
}: Pick<Config, "smsWebhookUrl" | "smsWebhookSecret">): TextMessageGateway | null {
  if (url === null || secret === null) return null;
  return {
    async send({ phone, code, user }) {
      const body = JSON.stringify({ user, sms: { phone, otp: code } });
      const response = await fetch(url, {
        method: "POST",
        headers: { "Content-Type": "application/json", ...signatureOf(body, secret) },
        body,
        redirect: "error",
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      await response.body?.cancel();
      if (!response.ok) throw new Error(`The gateway for text messages responded with ${response.status}`);
    },
    close() {},
  };
}

/** Headers of the specification "Standard Webhooks". */
function signatureOf(body: string, secret: Buffer): Record<string, string> {
  const id = `msg_${randomUUID()}`;
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signature = createHmac("sha256", secret).update(`${id}.${timestamp}.${body}`).digest("base64");
  return { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": `v1,${signature}` };
}
