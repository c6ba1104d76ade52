import { timingSafeEqual } from "node:crypto";
import type { TokenKeys } from "../caller/keys.ts";
import { sealingKey } from "../caller/sealing-key.ts";
import { openBytes, sealBytes } from "../sealed.ts";
import { signInAgain } from "./auth-errors.ts";
import type { ClientInfo } from "./client-info.ts";
import { LIFETIMES } from "./lifetimes.ts";
import { type LoginCredentials, type LoginSteps, type OpenSignIn, resultOrThrow } from "./login.ts";
import type { LoginAttempt } from "./login-attempts.ts";
import { digestOf } from "./random-secret.ts";

/** A login in two requests: the password first, then the code if the account requires one. */
export type MfaLogin = {
  begin<T>(
    credentials: Omit<LoginCredentials, "code">,
    clientInfo: ClientInfo,
    open: OpenSignIn<T>,
  ): Promise<MfaLoginResult<T>>;
  finish<T>(pending: string, code: string, clientInfo: ClientInfo, open: OpenSignIn<T>): Promise<T>;
};

/** The pending login is encrypted and stored by the browser, so that any gateway can continue it. */
export type MfaLoginResult<T> =
  | { readonly kind: "opened"; readonly opened: T }
  | { readonly kind: "code"; readonly pending: string };

/** `shown` is a digest of the password hash, so that changing the password invalidates the pending login. */
type PendingLogin = { readonly username: string; readonly shown: string; readonly until: number };

export function makeMfaLogin({ begin, resume, finish }: LoginSteps, { signing }: TokenKeys): MfaLogin {
  const key = sealingKey(signing, "pending sign-in");

  const encryptPending = (username: string, attempt: LoginAttempt): string => {
    const until = Date.now() + LIFETIMES.pendingSignIn * 1000;
    const pending: PendingLogin = { username, shown: digestOf(attempt.passwordHash!).toString("hex"), until };
    return sealBytes([JSON.stringify(pending)], key).toString("base64url");
  };

  const decryptPending = (text: string): PendingLogin => {
    try {
      const pending: PendingLogin = JSON.parse(openBytes(Buffer.from(text, "base64url"), key).toString("utf8"));
      if (Date.now() < pending.until) return pending;
    } catch {
      // From another deployment, or forged: refused like an expired one.
    }
    throw signInAgain();
  };

  return {
    async begin(credentials, clientInfo, open) {
      const attempt = await begin(credentials, clientInfo);
      const finished = await finish(attempt, { code: null, password: credentials.password }, open);
      if (finished.outcome === "code_missing")
        return { kind: "code", pending: encryptPending(credentials.username, attempt) };
      return { kind: "opened", opened: resultOrThrow(finished) };
    },

    async finish(text, code, clientInfo, open) {
      const { username, shown } = decryptPending(text);
      const attempt = await resume(username, (known) => isSamePassword(shown, known), clientInfo);
      return resultOrThrow(await finish(attempt, { code, password: null }, open));
    },
  };
}

function isSamePassword(shown: string, { passwordHash }: LoginAttempt): boolean {
  return passwordHash !== null && timingSafeEqual(digestOf(passwordHash), Buffer.from(shown, "hex"));
}
