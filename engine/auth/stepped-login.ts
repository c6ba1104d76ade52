import { timingSafeEqual } from "node:crypto";
import type { TokenKeys } from "../caller/keys.ts";
import { sealingKey } from "../caller/sealing-key.ts";
import { openBytes, sealBytes } from "../sealed.ts";
import type { Attempt } from "./attempts.ts";
import { LIFETIMES } from "./lifetimes.ts";
import { type Credentials, type LoginSteps, type Opening, orRefuse } from "./login.ts";
import { signInAgain } from "./refusals.ts";
import { digestOf } from "./secret.ts";
import type { Sender } from "./sender.ts";

/** A sign-in for people, who are asked for a code when they have shown the password. */
export type SteppedLogin = {
  begin<T>(credentials: Omit<Credentials, "code">, sender: Sender, open: Opening<T>): Promise<Step<T>>;
  finish<T>(pending: string, code: string, sender: Sender, open: Opening<T>): Promise<T>;
};

/** What is pending is kept by the browser, which cannot read it: any gateway may be asked next. */
export type Step<T> =
  | { readonly kind: "opened"; readonly opened: T }
  | { readonly kind: "code"; readonly pending: string };

/** Not the password, but which one it was: a new one ends what is pending. */
type Pending = { readonly username: string; readonly shown: string; readonly until: number };

export function makeSteppedLogin({ begin, resume, finish }: LoginSteps, { signing }: TokenKeys): SteppedLogin {
  const key = sealingKey(signing, "pending sign-in");

  const seal = (username: string, attempt: Attempt): string => {
    const until = Date.now() + LIFETIMES.pendingSignIn * 1000;
    const pending: Pending = { username, shown: digestOf(attempt.passwordHash!).toString("hex"), until };
    return sealBytes([JSON.stringify(pending)], key).toString("base64url");
  };

  const unseal = (text: string): Pending => {
    try {
      const pending: Pending = JSON.parse(openBytes(Buffer.from(text, "base64url"), key).toString("utf8"));
      if (Date.now() < pending.until) return pending;
    } catch {
      // Of another deployment, or made up: refused below like what has expired.
    }
    throw signInAgain();
  };

  return {
    async begin(credentials, sender, open) {
      const attempt = await begin(credentials, sender);
      const finished = await finish(attempt, { code: null, password: credentials.password }, open);
      if (finished.outcome === "code_missing") return { kind: "code", pending: seal(credentials.username, attempt) };
      return { kind: "opened", opened: orRefuse(finished) };
    },

    async finish(text, code, sender, open) {
      const { username, shown } = unseal(text);
      const attempt = await resume(username, (known) => isStill(shown, known), sender);
      return orRefuse(await finish(attempt, { code, password: null }, open));
    },
  };
}

function isStill(shown: string, { passwordHash }: Attempt): boolean {
  return passwordHash !== null && timingSafeEqual(digestOf(passwordHash), Buffer.from(shown, "hex"));
}
