import type {
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
} from "@simplewebauthn/server";
import type pg from "pg";
import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import { ApiError } from "#runtime";
import { accountDisabled, accountRequired } from "./auth-errors.ts";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter } from "./identity/client-info.ts";
import { LIFETIMES } from "./identity/lifetimes.ts";
import type { OpenSignIn, SignInProof } from "./login.ts";
import { isUuid } from "./random-secrets.ts";
import type { Passkey, PasskeyUser, RegisteredCredential, WebAuthn } from "./webauthn.ts";

export type PasskeyChallenge<Options> = {
  readonly challengeId: string;
  readonly options: Options;
  readonly expiresAt: Date;
};

/** The response of the authenticator to a challenge. */
type PasskeyResponse = { readonly challengeId: string; readonly credential: unknown };

/** Passkeys (WebAuthn) that users sign in with, without a password. Challenges are stored, and each is used once. */
export type Passkeys = {
  beginRegistration(userId: string): Promise<PasskeyChallenge<PublicKeyCredentialCreationOptionsJSON>>;
  finishRegistration(
    userId: string,
    response: PasskeyResponse & { readonly friendlyName?: string },
    clientInfo: ClientInfo,
  ): Promise<Passkey>;
  beginSignIn(): Promise<PasskeyChallenge<PublicKeyCredentialRequestOptionsJSON>>;
  /** The authenticator verified the user, so that it counts as both factors. */
  finishSignIn<T>(response: PasskeyResponse, clientInfo: ClientInfo, open: OpenSignIn<T>): Promise<T>;
  list(userId: string): Promise<readonly Passkey[]>;
  rename(userId: string, passkeyId: string, friendlyName: string): Promise<Passkey>;
  remove(userId: string, passkeyId: string, clientInfo: ClientInfo): Promise<void>;
};

/** The columns of auth.passkeys as `Passkey`. */
export const PASSKEY_COLUMNS = `
  passkey.id, passkey.user_id as "userId", passkey.factor_id as "factorId", passkey.friendly_name as "friendlyName",
  passkey.credential_id as "credentialId", passkey.public_key as "publicKey", passkey.counter, passkey.transports,
  passkey.is_backup_eligible as "isBackupEligible", passkey.is_backed_up as "isBackedUp", passkey.created_at as "createdAt",
  passkey.updated_at as "updatedAt", passkey.last_used_at as "lastUsedAt"`;

const FIND_USER = "select account.id as uuid, account.username from auth.users as account where account.user_id = $1";
const LIST_PASSKEYS = `
  select ${PASSKEY_COLUMNS} from auth.passkeys as passkey
  where passkey.user_id = $1 and passkey.factor_id is null order by passkey.created_at, passkey.id`;
/** The user handle that the authenticator stored must belong to the same account. The key of a second factor signs nobody in. */
const FIND_CREDENTIAL = `
  select ${PASSKEY_COLUMNS} from auth.passkeys as passkey join auth.users as account using (user_id)
  where passkey.credential_id = $1 and passkey.factor_id is null and account.id::pg_catalog.text = $2`;
const ADD_CHALLENGE = `
  select id, expires_at as "expiresAt" from auth.add_passkey_challenge($1, $2, $3, ${LIFETIMES.factorChallenge})`;
const TAKE_CHALLENGE = `
  select challenge, expires_at > pg_catalog.now() as "isLive" from auth.take_passkey_challenge($1, $2, $3) where id is not null`;
const ADD_PASSKEY = `
  select added.outcome, ${PASSKEY_COLUMNS}
  from auth.add_passkey($2, $3, ${CLIENT_INFO_SQL}) as added, lateral (select (added.added).*) as passkey`;
const PASS_PASSKEY = `select auth.pass_passkey($2, $3, $4, $5, ${CLIENT_INFO_SQL}) as outcome`;
const RENAME_PASSKEY = `select ${PASSKEY_COLUMNS} from auth.rename_passkey($1, $2, $3) as passkey where passkey.id is not null`;
const REMOVE_PASSKEY = `select auth.remove_passkey($2, $3, ${CLIENT_INFO_SQL}) as removed`;

/** The level is 1, as at Supabase Auth, but the authenticator has verified its user, so no other factor is required. */
const PASSKEY_PROOF: SignInProof = { methods: ["passkey"], aal: 1, isComplete: true };

type AddOutcome = "added" | "exists" | "too_many" | "no_account";
type PassOutcome = "passed" | "missing" | "disabled" | "counter";
type ChallengePurpose = "passkey_registration" | "passkey_sign_in";

export function makePasskeys({ asOwner, webAuthn }: { asOwner: AsOwner; webAuthn: WebAuthn }): Passkeys {
  const challenges = makeChallenges(asOwner);
  const list = async (userId: string): Promise<readonly Passkey[]> => {
    const { rows } = await asOwner((client) => client.query<Passkey>(LIST_PASSKEYS, [userId]));
    return rows;
  };

  return {
    list,
    async beginRegistration(userId) {
      const [user, existing] = await Promise.all([findPasskeyUser(asOwner, userId), list(userId)]);
      return challenges.save(
        "passkey_registration",
        userId,
        await webAuthn.registrationOptions(user, existing, "passkey"),
      );
    },
    async finishRegistration(userId, { challengeId, credential, friendlyName = "" }, clientInfo) {
      checkFriendlyName(friendlyName);
      const challenge = await challenges.take("passkey_registration", userId, challengeId);
      const registered = await webAuthn.verifyRegistration(credential, challenge, "passkey");
      if (!registered) throw passkeyRefused();
      return inOwnerTransaction(asOwner, (client) =>
        addPasskey(client, userId, { ...registered, friendly_name: friendlyName }, clientInfo),
      );
    },
    async beginSignIn() {
      return challenges.save("passkey_sign_in", null, await webAuthn.requestOptions([], "passkey"));
    },
    async finishSignIn({ challengeId, credential }, clientInfo, open) {
      const challenge = await challenges.take("passkey_sign_in", null, challengeId);
      const passkey = await findCredential(asOwner, credential);
      const use = passkey && (await webAuthn.verifyUse(credential, challenge, passkey, "passkey"));
      if (!use) throw passkeyRefused();
      const { userId } = passkey;
      const values = [clientInfoParameter(clientInfo), userId, passkey.id, use.counter, use.isBackedUp];
      const result = await inOwnerTransaction(asOwner, async (client) => {
        const { rows } = await client.query<{ outcome: PassOutcome }>(PASS_PASSKEY, values);
        const { outcome } = rows[0]!;
        return outcome === "passed" ? { opened: await open(client, userId, clientInfo, PASSKEY_PROOF) } : outcome;
      });
      if (typeof result === "object") return result.opened;
      throw result === "disabled" ? accountDisabled() : passkeyRefused();
    },
    async rename(userId, passkeyId, friendlyName) {
      checkFriendlyName(friendlyName);
      const { rows } = await inOwnerTransaction(asOwner, (client) =>
        client.query<Passkey>(RENAME_PASSKEY, [userId, uuidOrMissing(passkeyId), friendlyName]),
      );
      if (!rows[0]) throw passkeyNotFound();
      return rows[0];
    },
    async remove(userId, passkeyId, clientInfo) {
      const values = [clientInfoParameter(clientInfo), userId, uuidOrMissing(passkeyId)];
      const { rows } = await inOwnerTransaction(asOwner, (client) =>
        client.query<{ removed: boolean }>(REMOVE_PASSKEY, values),
      );
      if (!rows[0]!.removed) throw passkeyNotFound();
    },
  };
}

/** Each challenge is stored, and used once. */
function makeChallenges(asOwner: AsOwner) {
  return {
    async save<Options extends { readonly challenge: string }>(
      purpose: ChallengePurpose,
      userId: string | null,
      options: Options,
    ): Promise<PasskeyChallenge<Options>> {
      const { rows } = await inOwnerTransaction(asOwner, (client) =>
        client.query<{ id: string; expiresAt: Date }>(ADD_CHALLENGE, [purpose, userId, options.challenge]),
      );
      const { id, expiresAt } = rows[0]!;
      return { challengeId: id, options, expiresAt };
    },
    async take(purpose: ChallengePurpose, userId: string | null, id: string): Promise<string> {
      if (!isUuid(id)) throw challengeNotFound();
      const { rows } = await inOwnerTransaction(asOwner, (client) =>
        client.query<{ challenge: string; isLive: boolean }>(TAKE_CHALLENGE, [purpose, userId, id]),
      );
      if (!rows[0]) throw challengeNotFound();
      if (!rows[0].isLive) throw challengeExpired();
      return rows[0].challenge;
    },
  };
}

export async function findPasskeyUser(asOwner: AsOwner, userId: string): Promise<PasskeyUser> {
  const { rows } = await asOwner((client) => client.query<PasskeyUser>(FIND_USER, [userId]));
  if (!rows[0]) throw accountRequired();
  return rows[0];
}

type NewPasskey = RegisteredCredential & { readonly friendly_name: string; readonly factor_id?: string };

/** Stores a passkey in the transaction of the caller. */
export async function addPasskey(
  client: pg.ClientBase,
  userId: string,
  passkey: NewPasskey,
  clientInfo: ClientInfo,
): Promise<Passkey> {
  const values = [clientInfoParameter(clientInfo), userId, JSON.stringify(passkey)];
  const { rows } = await client.query<Passkey & { outcome: AddOutcome }>(ADD_PASSKEY, values);
  const { outcome, ...added } = rows[0]!;
  switch (outcome) {
    case "added":
      return added;
    case "exists":
      throw new ApiError("conflict", "PASSKEY_EXISTS", "This passkey is registered already.");
    case "too_many":
      throw new ApiError("conflict", "TOO_MANY_PASSKEYS", "The account has ten passkeys, which is the maximum.", {
        hint: "Remove one first.",
      });
    case "no_account":
      throw accountRequired();
  }
}

/** Returns the passkey that the response names, if it belongs to the user that the response names; null otherwise. */
async function findCredential(asOwner: AsOwner, credential: unknown): Promise<Passkey | null> {
  const { id, response } = (credential ?? {}) as { id?: unknown; response?: { userHandle?: unknown } | null };
  const handle = response?.userHandle;
  if (typeof id !== "string" || typeof handle !== "string") return null;
  const uuid = Buffer.from(handle, "base64url").toString("latin1");
  if (!isUuid(uuid) || id.includes("\0")) return null;
  const { rows } = await asOwner((client) => client.query<Passkey>(FIND_CREDENTIAL, [id, uuid]));
  return rows[0] ?? null;
}

const MAX_NAME_LENGTH = 100;

function checkFriendlyName(name: string): void {
  if (name.length <= MAX_NAME_LENGTH) return;
  const message = `A name has at most ${MAX_NAME_LENGTH} characters.`;
  throw new ApiError("invalid", "VALIDATION_ERROR", message, { details: [{ field: "name", message }] });
}

function uuidOrMissing(text: string): string {
  if (isUuid(text)) return text;
  throw passkeyNotFound();
}

function passkeyNotFound(): ApiError {
  return new ApiError("notFound", "PASSKEY_NOT_FOUND", "Passkey not found.");
}

function challengeNotFound(): ApiError {
  return new ApiError("invalid", "PASSKEY_CHALLENGE_NOT_FOUND", "The challenge does not exist, or was used.", {
    hint: "Start again.",
  });
}

function challengeExpired(): ApiError {
  return new ApiError("invalid", "PASSKEY_CHALLENGE_EXPIRED", "The challenge has expired.", { hint: "Start again." });
}

function passkeyRefused(): ApiError {
  return new ApiError("invalid", "PASSKEY_REFUSED", "The passkey is unknown, or its signature is not valid.", {
    hint: "Start again, or sign in another way.",
  });
}
