import { createHmac, randomInt } from "node:crypto";
import type pg from "pg";
import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import { type FlowStates, PKCE_PREFIX } from "./flow-states.ts";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter } from "./identity/client-info.ts";
import { LIFETIMES } from "./identity/lifetimes.ts";
import { deriveEncryptionKey, type IssuingKeys } from "./identity/token-keys.ts";
import { CODE_PROOF, type OpenSignIn } from "./login.ts";
import { digestOf, generateSecret } from "./random-secrets.ts";

export type CodePurpose =
  | "signup"
  | "invite"
  | "magiclink"
  | "recovery"
  | "email_change_current"
  | "email_change_new"
  | "reauthentication"
  | "sms"
  | "sms_signup"
  | "phone_change";

type NewCode = {
  readonly purpose: CodePurpose;
  readonly userId: string;
  /** The recipient: an e-mail address or a phone number. */
  readonly to: string;
  /** The address that the client enters with the code, if it is not the recipient. */
  readonly enteredWith?: string;
  /** The new address or phone number of a change. */
  readonly newAddress?: string;
  /** The sign-in that ends with a code for tokens (PKCE). */
  readonly flowId?: string | null;
  readonly signUp?: SignUp | null;
};

/** The values that an account gets once the mail or the message of this sign-up has proved the address or the number. */
export type SignUp = {
  readonly name: string;
  readonly passwordHash: string | null;
  readonly metadata: Readonly<Record<string, unknown>> | null;
};

/** The secrets of one mail. They must not appear anywhere else. */
export type MailSecrets = {
  /** The secret of the link. */
  readonly token: string;
  /** Six digits, to enter by hand. */
  readonly code: string;
};

/** The result of a link or a code. */
export type CodeResult<T> =
  | { readonly kind: "opened"; readonly opened: T; readonly purpose: CodePurpose }
  /** A code for tokens, for the client that began the sign-in. */
  | { readonly kind: "flow"; readonly code: string; readonly purpose: CodePurpose }
  /** One side of a change of address is confirmed; the other side is not. */
  | { readonly kind: "half" }
  | { readonly kind: "expired" | "disabled" | "flow_expired" }
  | { readonly kind: "wait"; readonly seconds: number };

type CodeOutcome = {
  readonly outcome: "passed" | "half" | "expired" | "disabled" | "flow_expired" | "wait";
  readonly user_id: string | null;
  readonly purpose: CodePurpose | null;
  readonly flow_id?: string | null;
  readonly wait?: number;
};

/** Links and six-digit codes. One mail has both, and either can be used, once. */
export type OneTimeCodes = {
  /** Adds a code, in a transaction that has locked the account. It invalidates the previous code of the same purpose and sign-up. */
  add(client: pg.ClientBase, code: NewCode): Promise<MailSecrets>;
  useLink<T>(link: OpenedLink, clientInfo: ClientInfo, open: OpenSignIn<T>): Promise<CodeResult<T>>;
  useCode<T>(entered: EnteredCode, clientInfo: ClientInfo, open: OpenSignIn<T>): Promise<CodeResult<T>>;
  /** Returns true if `code` was sent to the signed-in user to confirm a change. A code is accepted once. */
  useReauthentication(userId: string, code: string, clientInfo: ClientInfo): Promise<boolean>;
};

type OpenedLink = {
  readonly token: string;
  readonly purposes: readonly CodePurpose[];
  /** True if the result is part of a URL: it is then the code for tokens that the client requested. */
  readonly isRedirect: boolean;
};

type EnteredCode = {
  /** The e-mail address or the phone number. */
  readonly address: string;
  readonly code: string;
  readonly purposes: readonly CodePurpose[];
};

type OneTimeCodesOptions = { readonly asOwner: AsOwner; readonly keys: IssuingKeys; readonly flows: FlowStates };

const ADD_CODE = "select auth.add_mail_code($1, $2, $3, $4, $5, $6, $7, $8, $9)";
const USE_LINK = `select * from auth.use_mail_link($2, $3, $4, ${CLIENT_INFO_SQL})`;
const USE_CODE = `select * from auth.use_mail_code($2, $3, $4, ${CLIENT_INFO_SQL})`;
const USE_REAUTHENTICATION = `select auth.use_reauthentication($2, $3, ${CLIENT_INFO_SQL}) as used`;

export function makeOneTimeCodes({ asOwner, keys, flows }: OneTimeCodesOptions): OneTimeCodes {
  const key = deriveEncryptionKey(keys.signing, "one-time codes");
  /** The hash is bound to the address. It is an HMAC, because six digits could be guessed from a plain hash. */
  const codeHash = (address: string, code: string): Buffer =>
    createHmac("sha256", key)
      .update(JSON.stringify([address.toLowerCase(), code]))
      .digest();

  const finish = async <T>(
    client: pg.ClientBase,
    { outcome, user_id: userId, purpose, flow_id: flowId, wait }: CodeOutcome,
    clientInfo: ClientInfo,
    open: OpenSignIn<T>,
  ): Promise<CodeResult<T>> => {
    if (outcome === "wait") return { kind: "wait", seconds: wait! };
    if (outcome !== "passed") return { kind: outcome };
    if (!flowId) {
      const opened = await open(client, userId!, clientInfo, CODE_PROOF);
      return { kind: "opened", opened, purpose: purpose! };
    }
    const code = await flows.issueCode(client, flowId, userId!);
    return code === null ? { kind: "flow_expired" } : { kind: "flow", code, purpose: purpose! };
  };

  return {
    async add(client, { purpose, userId, to, enteredWith = to, newAddress = null, flowId = null, signUp = null }) {
      const token = `${flowId === null ? "" : PKCE_PREFIX}${generateSecret()}`;
      const code = String(randomInt(1_000_000)).padStart(6, "0");
      const seconds = purpose === "invite" ? LIFETIMES.invitation : LIFETIMES.mailCode;
      const hashes = [digestOf(token), codeHash(enteredWith, code)];
      await client.query(ADD_CODE, [
        ...hashes,
        purpose,
        userId,
        to,
        newAddress,
        flowId,
        seconds,
        toSignUpParameter(signUp),
      ]);
      return { token, code };
    },

    useLink({ token, purposes, isRedirect }, clientInfo, open) {
      return inOwnerTransaction(asOwner, async (client) => {
        const values = [clientInfoParameter(clientInfo), digestOf(token), purposes, isRedirect];
        const { rows } = await client.query<CodeOutcome>(USE_LINK, values);
        return finish(client, isRedirect ? rows[0]! : { ...rows[0]!, flow_id: null }, clientInfo, open);
      });
    },

    useCode({ address, code, purposes }, clientInfo, open) {
      return inOwnerTransaction(asOwner, async (client) => {
        const values = [clientInfoParameter(clientInfo), address, codeHash(address, code), purposes];
        const { rows } = await client.query<CodeOutcome>(USE_CODE, values);
        return finish(client, rows[0]!, clientInfo, open);
      });
    },

    useReauthentication(userId, code, clientInfo) {
      return inOwnerTransaction(asOwner, async (client) => {
        const values = [clientInfoParameter(clientInfo), userId, codeHash(userId, code)];
        const { rows } = await client.query<{ used: boolean }>(USE_REAUTHENTICATION, values);
        return rows[0]!.used;
      });
    },
  };
}

/** Returns the format that auth.add_mail_code and auth.begin_sign_up read. */
export function toSignUpParameter(signUp: SignUp | null): string | null {
  if (!signUp) return null;
  const { name, passwordHash, metadata } = signUp;
  return JSON.stringify({ name, password_hash: passwordHash, metadata });
}
