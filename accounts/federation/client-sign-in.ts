import type pg from "pg";
import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import { ApiError, shortenText } from "#runtime";
import type { FlowStates } from "../flow-states.ts";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter } from "../identity/client-info.ts";
import type { OpenSignIn, SignInProof } from "../login.ts";
import { generateSecret } from "../random-secrets.ts";
import type { SessionTokens } from "../token-pairs.ts";
import {
  type ClientCallback,
  type ClientSignInResult,
  type FederationDependencies,
  passIdentity,
  passWithin,
  type ReceivedIdentity,
  unlessError,
} from "./federated-sign-in.ts";
import { asProviderError, auditFailures, signInEnded } from "./federation-errors.ts";
import type { ReadIdToken, SubmittedIdToken } from "./id-token.ts";
import type { SignInOptions } from "./oauth-state-store.ts";
import type { CallbackRequest, ExternalIdentity, Provider, SignInParameters } from "./provider.ts";

export type ClientSignInDependencies = FederationDependencies & {
  readonly readIdToken: ReadIdToken;
  readonly flows: Pick<FlowStates, "begin" | "issueCode">;
  readonly openTokens: OpenSignIn<SessionTokens>;
};

/** The sign-in at a provider that a client of Supabase Auth requests. */
type RequestedClientSignIn = {
  readonly redirectTo: string;
  /** The S256 challenge (PKCE). Null if the tokens are returned in the fragment of the redirect. */
  readonly codeChallenge: string | null;
  /** The signed-in user who links an identity; null for a sign-in. */
  readonly userId: string | null;
  readonly parameters: SignInParameters;
};

/** The state of such a sign-in belongs to no browser: a client may start it with fetch, without cookies. */
const ANY_BROWSER = "";

const LOG_SIGN_IN = `select auth.log_event('federation.signed_in', $2, ${CLIENT_INFO_SQL}, $3)`;

const MAX_NAME_LENGTH = 200;
/** Adds missing metadata only, because the user may have changed the rest. Metadata is part of tokens, so its size is limited. */
const COMPLETE_METADATA = `
  update auth.users as account set raw_user_meta_data = $2::pg_catalog.jsonb || account.raw_user_meta_data
  where account.user_id = $1 and not account.raw_user_meta_data ?& array(select pg_catalog.jsonb_object_keys($2::pg_catalog.jsonb))
    and pg_catalog.octet_length(($2::pg_catalog.jsonb || account.raw_user_meta_data)::pg_catalog.text) <= 8192`;
const UNLINK_IDENTITY = `select auth.unlink_identity($2, $3, ${CLIENT_INFO_SQL}) as outcome`;

/** Starts a sign-in and returns the provider's URL for the browser. */
export async function beginClientSignIn(
  { asOwner, providers, protocolOf, stateStore }: ClientSignInDependencies,
  name: string,
  { redirectTo, codeChallenge, userId, parameters }: RequestedClientSignIn,
  clientInfo: ClientInfo,
): Promise<string> {
  const provider = await providers.find(name);
  return auditFailures(asOwner, name, clientInfo, async () => {
    const state = generateSecret();
    const mode = codeChallenge === null ? "fragment" : "code";
    const { url, checks } = await asProviderError(() => protocolOf(provider, mode).startSignIn(state, parameters));
    const owner = { provider: name, purpose: "sign-in", browser: ANY_BROWSER } as const;
    await stateStore.save(state, owner, { mode, redirectTo, codeChallenge, userId }, checks);
    return url;
  });
}

/** Verifies the callback of a provider that uses the shared redirect URI. */
export async function finishClientSignIn(
  dependencies: ClientSignInDependencies,
  callback: CallbackRequest,
  clientInfo: ClientInfo,
): Promise<ClientSignInResult> {
  const { asOwner, providers, stateStore } = dependencies;
  const state = new URLSearchParams(callback.query).get("state") ?? "";
  const name = await stateStore.providerOf(state);
  if (name === null) throw signInEnded();
  const provider = await providers.find(name);
  const saved = await auditFailures(asOwner, name, clientInfo, () =>
    stateStore.take(state, { provider: name, purpose: "sign-in", browser: ANY_BROWSER }),
  );
  return completeClientSignIn(dependencies, { provider, callback, state, saved }, clientInfo);
}

/** Expected errors are part of the result, because the redirect reports them to the client. */
export async function completeClientSignIn(
  dependencies: ClientSignInDependencies,
  { provider, callback, state, saved: { options, createdAt, checks } }: ClientCallback,
  clientInfo: ClientInfo,
): Promise<ClientSignInResult> {
  const { asOwner, protocolOf } = dependencies;
  const redirectTo = options.redirectTo!;
  const isLink = options.userId !== null;
  try {
    return await auditFailures(asOwner, provider.name, clientInfo, async () => {
      const identity = await protocolOf(provider, options.mode).readIdentity(callback, state, checks);
      const sent = { provider, identity, linking: options.userId, startedAt: createdAt };
      if (isLink)
        return {
          kind: "client",
          redirectTo,
          isLink,
          result: { code: await holdLink(dependencies, sent, options, clientInfo) },
        };
      const result = await openForClient(dependencies, sent, clientInfo, (client, userId, proof) =>
        completeForClient(dependencies, { client, userId, proof, codeChallenge: options.codeChallenge }, clientInfo),
      );
      return { kind: "client", redirectTo, isLink, result };
    });
  } catch (error) {
    if (error instanceof ApiError) return { kind: "client", redirectTo, isLink, result: { error } };
    throw error;
  }
}

/** A link that waits for the client which began it. */
type HeldLink = Pick<ReceivedIdentity, "identity" | "linking"> & {
  readonly provider: string;
  readonly startedAt: string;
};

/**
 * The person who returns from the provider may not be the user, who may have sent that person there. So the identity is
 * linked when the client that began the sign-in exchanges the code, which that person's browser receives. A refusal that is
 * known now is reported now.
 */
async function holdLink(
  { asOwner, flows }: ClientSignInDependencies,
  { provider, identity, linking, startedAt }: VerifiedIdentity,
  { codeChallenge }: Pick<SignInOptions, "codeChallenge">,
  clientInfo: ClientInfo,
): Promise<string> {
  if (linking === null || codeChallenge === null) throw signInEnded();
  const received = { provider: provider.name, identity, linking, startedAt };
  return inOwnerTransaction(asOwner, async (client) => {
    await client.query("savepoint link");
    unlessError(await passWithin(client, received, clientInfo));
    await client.query("rollback to savepoint link");
    const flowId = await flows.begin(client, {
      codeChallenge: { challenge: codeChallenge, method: "s256" },
      method: provider.kind === "saml" ? "sso/saml" : "oauth",
      userId: linking,
    });
    const held: HeldLink = { ...received, startedAt: startedAt.toISOString() };
    return (await flows.issueCode(client, flowId, linking, JSON.stringify(held)))!;
  });
}

/** Links the identity in the transaction that exchanges the code. */
export async function finishLink(
  { providers }: Pick<ClientSignInDependencies, "providers">,
  client: pg.ClientBase,
  held: string,
  clientInfo: ClientInfo,
): Promise<void> {
  const { startedAt, ...received }: HeldLink = JSON.parse(held);
  const provider = await providers.find(received.provider);
  const { userId, identity } = unlessError(
    await passWithin(client, { ...received, startedAt: new Date(startedAt) }, clientInfo),
  );
  await client.query(COMPLETE_METADATA, [userId, JSON.stringify(toMetadata(identity, provider))]);
}

export type IdTokenSignIn = SubmittedIdToken & {
  /** The name of the provider. */
  readonly provider: string;
  /** The signed-in user who links the identity; null for a sign-in. */
  readonly linking: string | null;
};

/** Signs in with an ID token that the application has received itself. */
export async function signInWithIdToken<T extends object>(
  dependencies: ClientSignInDependencies,
  submitted: IdTokenSignIn,
  clientInfo: ClientInfo,
  open: OpenSignIn<T>,
): Promise<T> {
  const { asOwner, providers, readIdToken } = dependencies;
  const provider = await providers.find(submitted.provider);
  if (provider.kind !== "oidc") throw noIdTokens(provider);
  return auditFailures(asOwner, provider.name, clientInfo, async () => {
    const identity = await readIdToken(provider, submitted);
    const sent = { provider, identity, linking: submitted.linking, startedAt: new Date() };
    return openForClient(dependencies, sent, clientInfo, (client, userId, proof) =>
      open(client, userId, clientInfo, proof),
    );
  });
}

/** Removes an identity of a user, by the id that the user's JSON has. */
export async function unlinkIdentity(
  asOwner: AsOwner,
  userId: string,
  identityId: string,
  clientInfo: ClientInfo,
): Promise<"unlinked" | "absent" | "last"> {
  const values = [clientInfoParameter(clientInfo), userId, identityId];
  const { rows } = await inOwnerTransaction(asOwner, (client) =>
    client.query<{ outcome: "unlinked" | "absent" | "last" }>(UNLINK_IDENTITY, values),
  );
  return rows[0]!.outcome;
}

type VerifiedIdentity = {
  readonly provider: Provider;
  readonly identity: ExternalIdentity;
  readonly linking: string | null;
  readonly startedAt: Date;
};
type OpenForClient<T> = (client: pg.ClientBase, userId: string, proof: SignInProof) => Promise<T>;

/** A client requests the second factor itself, with the tokens of the first, which are restricted until then. */
async function openForClient<T extends object>(
  dependencies: ClientSignInDependencies,
  { provider, identity, linking, startedAt }: VerifiedIdentity,
  clientInfo: ClientInfo,
  open: OpenForClient<T>,
): Promise<T> {
  const method = provider.kind === "saml" ? "sso/saml" : "oauth";
  const values = { provider: provider.name, identity, linking, startedAt };
  return passIdentity(dependencies, values, clientInfo, async (client, { outcome, userId, identity: passed }) => {
    await client.query(COMPLETE_METADATA, [userId, JSON.stringify(toMetadata(passed, provider))]);
    if (outcome === "code_missing") {
      const details = JSON.stringify({ provider: provider.name });
      await client.query(LOG_SIGN_IN, [clientInfoParameter(clientInfo), userId, details]);
    }
    return open(client, userId, { methods: [method], aal: 1, isComplete: outcome === "passed" });
  });
}

/** Returns the metadata with the names that applications for Supabase read. */
function toMetadata({ subject, email, isEmailVerified, name, picture }: ExternalIdentity, { issuer }: Provider) {
  return {
    iss: issuer,
    sub: subject,
    provider_id: subject,
    ...(email !== null && { email, email_verified: isEmailVerified }),
    ...(name !== null && { name: shortenText(name, MAX_NAME_LENGTH), full_name: shortenText(name, MAX_NAME_LENGTH) }),
    ...(picture && { picture, avatar_url: picture }),
  };
}

type ClientCompletion = {
  readonly client: pg.ClientBase;
  readonly userId: string;
  readonly proof: SignInProof;
  readonly codeChallenge: string | null;
};

async function completeForClient(
  { flows, openTokens }: ClientSignInDependencies,
  { client, userId, proof, codeChallenge }: ClientCompletion,
  clientInfo: ClientInfo,
): Promise<ClientSignInResult["result"]> {
  if (codeChallenge === null) return { tokens: await openTokens(client, userId, clientInfo, proof) };
  const flowId = await flows.begin(client, {
    codeChallenge: { challenge: codeChallenge, method: "s256" },
    method: proof.methods[0]!,
    userId,
  });
  return { code: (await flows.issueCode(client, flowId, userId))! };
}

function noIdTokens({ name }: Provider): ApiError {
  return new ApiError("invalid", "VALIDATION_ERROR", `The provider ${name} has no ID tokens.`);
}
