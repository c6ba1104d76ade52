import type {
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
} from "@simplewebauthn/server";
import type pg from "pg";
import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import { matchTimeStep, newTotpSecret, normalizeTotpCode, totpUri } from "./factor-codes.ts";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter } from "./identity/client-info.ts";
import { LIFETIMES } from "./identity/lifetimes.ts";
import type { LoginAttempt, LoginAttempts } from "./login-attempts.ts";
import { addPasskey, findPasskeyUser, PASSKEY_COLUMNS } from "./passkeys.ts";
import { isUuid } from "./random-secrets.ts";
import type { TokenSignIn } from "./token-pairs.ts";
import type { Passkey, RegisteredCredential, WebAuthn } from "./webauthn.ts";

export type FactorType = "totp" | "webauthn";

export type SecondFactor = {
  readonly id: string;
  readonly factorType: FactorType;
  readonly friendlyName: string;
  readonly isVerified: boolean;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  readonly lastChallengedAt: Date | null;
};

type TotpKey = { readonly secret: string; readonly uri: string; readonly qrCodeSvg: string };

export type FactorEnrolmentResult =
  | { readonly outcome: "added"; readonly factor: SecondFactor; readonly totp: TotpKey | null }
  | { readonly outcome: "name_taken" | "too_many" | "level" | "no_account" };

/** The request to an authenticator: a new key for a pending factor, or a signature. */
type FactorKeyRequest =
  | { readonly type: "create"; readonly options: PublicKeyCredentialCreationOptionsJSON }
  | { readonly type: "request"; readonly options: PublicKeyCredentialRequestOptionsJSON };

export type FactorChallenge = {
  readonly id: string;
  readonly factorType: FactorType;
  readonly expiresAt: Date;
  /** Null for an authenticator app. */
  readonly keyRequest: FactorKeyRequest | null;
};

/** The code of an app, or the response of an authenticator. */
type FactorResponse = { readonly challengeId: string; readonly code: string; readonly credential: unknown };

export type FactorRefusal = "missing" | "challenge" | "expired" | "address" | "disabled" | "level" | "session" | "code";
type FactorVerificationResult<T> =
  | { readonly outcome: "passed"; readonly opened: T }
  | { readonly outcome: FactorRefusal };

/** Several second factors of a user: authenticator apps and security keys. A sign-in by tokens proves one to reach level 2. */
export type SecondFactors = {
  list(userId: string): Promise<readonly SecondFactor[]>;
  enroll(
    signIn: TokenSignIn,
    factor: { readonly factorType: FactorType; readonly friendlyName: string; readonly issuer: string },
    clientInfo: ClientInfo,
  ): Promise<FactorEnrolmentResult>;
  /** Returns null if the user has no such factor. */
  challenge(userId: string, factorId: string, clientInfo: ClientInfo): Promise<FactorChallenge | null>;
  /** `continueSignIn` continues the sign-in, in the same transaction. */
  verify<T>(
    signIn: TokenSignIn,
    factorId: string,
    response: FactorResponse,
    clientInfo: ClientInfo,
    continueSignIn: (client: pg.ClientBase, signIn: TokenSignIn, clientInfo: ClientInfo) => Promise<T>,
  ): Promise<FactorVerificationResult<T>>;
  remove(signIn: TokenSignIn, factorId: string, clientInfo: ClientInfo): Promise<"removed" | "missing" | "level">;
};

const FACTOR_COLUMNS = `
  factor.id, factor.factor_type as "factorType", factor.friendly_name as "friendlyName", factor.state = 'enabled' as "isVerified",
  factor.created_at as "createdAt", factor.updated_at as "updatedAt", factor.last_challenged_at as "lastChallengedAt"`;
const LIST_FACTORS = `
  select ${FACTOR_COLUMNS} from auth.mfa_factors as factor where factor.user_id = $1 order by factor.created_at, factor.id`;
const ENROLL_FACTOR = `
  select enrolled.outcome, ${FACTOR_COLUMNS}
  from auth.add_factor($2, $3, $4, $5, $6, ${CLIENT_INFO_SQL}) as enrolled, lateral (select (enrolled.factor).*) as factor`;
const FIND_FACTOR = `
  select ${FACTOR_COLUMNS}, factor.secret from auth.mfa_factors as factor where factor.user_id = $1 and factor.id = $2`;
const FIND_CHALLENGED_FACTOR = `
  select factor.factor_type as "factorType", factor.state = 'enabled' as "isVerified", factor.secret, challenge.challenge
  from auth.mfa_factors as factor left join auth.mfa_challenges as challenge
    on challenge.factor_id = factor.id and challenge.id = $3
  where factor.user_id = $1 and factor.id = $2`;
const FIND_KEYS = `select ${PASSKEY_COLUMNS} from auth.passkeys as passkey where passkey.factor_id = $1`;
const FIND_USERS_KEYS = `select ${PASSKEY_COLUMNS} from auth.passkeys as passkey where passkey.user_id = $1`;
const ADD_CHALLENGE = `
  select id, expires_at as "expiresAt"
  from auth.add_factor_challenge($2, $3, $4, ${LIFETIMES.factorChallenge}, ${CLIENT_INFO_SQL}) where id is not null`;
const PASS_FACTOR = `select auth.pass_factor($2, $3, $4, $5, $6, $7, $8, $9, $10, ${CLIENT_INFO_SQL}) as outcome`;
const REMOVE_FACTOR = `select auth.remove_factor($2, $3, $4, ${CLIENT_INFO_SQL}) as outcome`;

type ChallengedFactor = Pick<SecondFactor, "factorType" | "isVerified"> & {
  readonly secret: string | null;
  readonly challenge: string | null;
};

/** The verified proof: a time step, a new key, or the use of a key. */
type Proof =
  | { readonly kind: "code"; readonly step: number }
  | { readonly kind: "newKey"; readonly key: RegisteredCredential }
  | { readonly kind: "key"; readonly passkeyId: string; readonly counter: number; readonly isBackedUp: boolean };

type SecondFactorsOptions = {
  readonly asOwner: AsOwner;
  readonly attempts: LoginAttempts;
  readonly webAuthn: WebAuthn;
};

export function makeSecondFactors({ asOwner, attempts, webAuthn }: SecondFactorsOptions): SecondFactors {
  const queryRow = async <Row extends pg.QueryResultRow>(text: string, values: unknown[]): Promise<Row | null> => {
    const { rows } = await inOwnerTransaction(asOwner, (client) => client.query<Row>(text, values));
    return rows[0] ?? null;
  };
  const proofs = makeProofs({ asOwner, webAuthn });

  return {
    async list(userId) {
      return (await asOwner((client) => client.query<SecondFactor>(LIST_FACTORS, [userId]))).rows;
    },

    async enroll({ userId, sessionId }, { factorType, friendlyName, issuer }, clientInfo) {
      const secret = factorType === "totp" ? newTotpSecret() : null;
      const values = [clientInfoParameter(clientInfo), userId, factorType, friendlyName, secret, sessionId];
      type Row = SecondFactor & { outcome: FactorEnrolmentResult["outcome"] };
      const { outcome, ...factor } = (await queryRow<Row>(ENROLL_FACTOR, values))!;
      if (outcome !== "added") return { outcome };
      if (secret === null) return { outcome, factor, totp: null };
      const { username } = await findPasskeyUser(asOwner, userId);
      return { outcome, factor, totp: await toTotpKey(secret, issuer, username) };
    },

    async challenge(userId, factorId, clientInfo) {
      if (!isUuid(factorId)) return null;
      const factor = await queryRow<SecondFactor>(FIND_FACTOR, [userId, factorId]);
      if (!factor) return null;
      const keyRequest = factor.factorType === "webauthn" ? await proofs.request(userId, factor) : null;
      const values = [clientInfoParameter(clientInfo), userId, factorId, keyRequest?.options.challenge ?? null];
      const added = await queryRow<Pick<FactorChallenge, "id" | "expiresAt">>(ADD_CHALLENGE, values);
      return added && { ...added, factorType: factor.factorType, keyRequest };
    },

    async verify(signIn, factorId, response, clientInfo, continueSignIn) {
      const { userId, sessionId } = signIn;
      const { challengeId } = response;
      if (!isUuid(factorId)) return { outcome: "missing" };
      if (!isUuid(challengeId)) return { outcome: "challenge" };
      const factor = await queryRow<ChallengedFactor>(FIND_CHALLENGED_FACTOR, [userId, factorId, challengeId]);
      if (!factor) return { outcome: "missing" };
      if (factor.factorType === "webauthn" && factor.challenge === null) return { outcome: "challenge" };
      const attempt = await attempts.beginFor(userId, clientInfo);
      return attempts.withdrawOnError(attempt, async () => {
        const proof = await proofs.verify(factorId, factor, response);
        if (!proof) {
          await attempts.fail(attempt, "code");
          return { outcome: "code" };
        }
        return inOwnerTransaction(asOwner, async (client) => {
          const outcome = await passFactor(client, attempt, { sessionId, factorId, challengeId, proof });
          if (outcome !== "passed") return { outcome };
          return { outcome, opened: await continueSignIn(client, signIn, clientInfo) };
        });
      });
    },

    async remove({ userId, sessionId }, factorId, clientInfo) {
      if (!isUuid(factorId)) return "missing";
      const values = [clientInfoParameter(clientInfo), userId, factorId, sessionId];
      return (await queryRow<{ outcome: "removed" | "missing" | "level" }>(REMOVE_FACTOR, values))!.outcome;
    },
  };
}

/** Requests to the devices of users, and the check of their responses. */
function makeProofs({ asOwner, webAuthn }: Pick<SecondFactorsOptions, "asOwner" | "webAuthn">) {
  const findKeys = async (text: string, id: string): Promise<readonly Passkey[]> =>
    (await asOwner((client) => client.query<Passkey>(text, [id]))).rows;

  const request = async (userId: string, factor: SecondFactor): Promise<FactorKeyRequest> => {
    if (factor.isVerified) {
      const keys = await findKeys(FIND_KEYS, factor.id);
      return { type: "request", options: await webAuthn.requestOptions(keys, "factor") };
    }
    const [user, keys] = await Promise.all([findPasskeyUser(asOwner, userId), findKeys(FIND_USERS_KEYS, userId)]);
    return { type: "create", options: await webAuthn.registrationOptions(user, keys, "factor") };
  };

  const verify = async (
    factorId: string,
    { factorType, isVerified, secret, challenge }: ChallengedFactor,
    { code, credential }: FactorResponse,
  ): Promise<Proof | null> => {
    if (factorType === "totp") {
      const digits = normalizeTotpCode(code);
      const step = digits === null ? null : await matchTimeStep(secret!, digits);
      return step === null ? null : { kind: "code", step };
    }
    if (!isVerified) {
      const key = await webAuthn.verifyRegistration(credential, challenge!, "factor");
      return key && { kind: "newKey", key };
    }
    const id = (credential as { id?: unknown } | null)?.id;
    const passkey = (await findKeys(FIND_KEYS, factorId)).find(({ credentialId }) => credentialId === id);
    const use = passkey && (await webAuthn.verifyUse(credential, challenge!, passkey, "factor"));
    return use ? { kind: "key", passkeyId: passkey.id, ...use } : null;
  };

  return { request, verify };
}

type VerifiedFactor = {
  readonly sessionId: string | null;
  readonly factorId: string;
  readonly challengeId: string;
  readonly proof: Proof;
};

async function passFactor(
  client: pg.ClientBase,
  { userId, countedName, clientInfo }: LoginAttempt,
  { sessionId, factorId, challengeId, proof }: VerifiedFactor,
): Promise<"passed" | FactorRefusal> {
  const step = proof.kind === "code" ? proof.step : null;
  const [passkeyId, counter, isBackedUp] =
    proof.kind === "key" ? [proof.passkeyId, proof.counter, proof.isBackedUp] : [null, null, null];
  const values = [
    clientInfoParameter(clientInfo),
    countedName,
    userId,
    sessionId,
    factorId,
    challengeId,
    step,
    passkeyId,
    counter,
    isBackedUp,
  ];
  const { rows } = await client.query<{ outcome: "passed" | FactorRefusal }>(PASS_FACTOR, values);
  const { outcome } = rows[0]!;
  if (outcome === "passed" && proof.kind === "newKey") {
    await addPasskey(client, userId!, { ...proof.key, friendly_name: "", factor_id: factorId }, clientInfo);
  }
  return outcome;
}

async function toTotpKey(secret: string, issuer: string, username: string): Promise<TotpKey> {
  const uri = totpUri(secret, issuer, username);
  return { secret, uri, qrCodeSvg: await toQrCodeSvg(uri) };
}

/** Clients put the text into a data: URL, where a # would begin the fragment. */
async function toQrCodeSvg(text: string): Promise<string> {
  const { toString: toQrCode } = await import("qrcode");
  const svg = await toQrCode(text, { type: "svg" });
  return svg.replaceAll("#ffffff", "white").replaceAll("#000000", "black").trim();
}
