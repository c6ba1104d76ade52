import { createSecretKey, randomUUID } from "node:crypto";
import type { Config } from "#config";
import { signWebhook } from "#runtime";

/** A code for a phone number, with the data of the user. */
export type TextMessage = {
  /** The number without the plus sign. */
  readonly phone: string;
  readonly code: string;
  readonly user: object;
};

type TextMessageGateway = { send(message: TextMessage): Promise<void>; close(): void };

const TIMEOUT_MS = 5_000;

/** Sends text messages by a webhook, in the form of Supabase's "Send SMS" hook; null without one. */
export function makeTextMessageGateway({
  smsWebhookUrl: url,
  smsWebhookSecret: secret,
}: Pick<Config, "smsWebhookUrl" | "smsWebhookSecret">): TextMessageGateway | null {
  if (url === null || secret === null) return null;
  const keys = [createSecretKey(secret)];
  return {
    async send({ phone, code, user }) {
      const body = JSON.stringify({ user, sms: { phone, otp: code } });
      const response = await fetch(url, {
        method: "POST",
        headers: { "Content-Type": "application/json", ...signWebhook(`msg_${randomUUID()}`, body, keys) },
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
