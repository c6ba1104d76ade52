import { digestOf, generateSecret, type OAuthGrant, type SessionClaims } from "#accounts";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter } from "#accounts/identity";
import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import { type ClientStore, type DescribedClient, makeClientStore } from "./client-store.ts";

/** A validated request of an application for access (RFC 6749 §4.1.1). */
export type AuthorizationRequest = {
  readonly client_id: string;
  readonly redirect_uri: string;
  readonly scopes: readonly string[];
  readonly resource: string;
  /** The challenge of PKCE, by S256. */
  readonly challenge: string;
  readonly state: string | null;
  readonly nonce: string | null;
  readonly asks_always: boolean;
};

type PendingAuthorization = AuthorizationRequest & { readonly id: string };

/** A request for access that a user decides about. */
export type OpenedAuthorization = {
  readonly request: PendingAuthorization;
  readonly client: DescribedClient;
  /** True if the user need not be asked: the same was granted to this application, which keeps a secret. */
  readonly isGranted: boolean;
};

export type ListedGrant = {
  readonly clientId: string;
  readonly clientName: string;
  readonly clientUri: string | null;
  readonly logoUri: string | null;
  readonly scopes: readonly string[];
  readonly resource: string;
  readonly grantedAt: Date;
  readonly expiresAt: Date;
  readonly lastUsedAt: Date | null;
};

export type Approval = { readonly userId: string; readonly signedInAt: Date };

type CodeExchange = {
  readonly code: string;
  readonly clientId: string;
  readonly redirectUri: string;
  readonly challenge: string;
};

/** A sign-in that an application holds: its grant, the claims of its user, and its next refresh token. */
export type OAuthSession = {
  readonly grant: OAuthGrant;
  readonly claims: SessionClaims;
  readonly refreshToken: string;
  readonly nonce: string | null;
  readonly signedInAt: Date | null;
};

type SessionRow = {
  readonly outcome: string;
  readonly claims: SessionClaims;
  readonly grant_id: string;
  readonly scopes: readonly string[];
  readonly resource: string;
  readonly expires_at: Date;
  readonly nonce?: string | null;
  readonly signed_in_at?: Date | null;
};

type GrantedSession = { readonly userId: string; readonly scopes: readonly string[]; readonly resource: string } & {
  readonly issuedAt: Date;
  readonly expiresAt: Date;
};

/** Signs tokens in the transaction that stores the refresh token. */
type SignTokens<T> = (client: Parameters<Parameters<AsOwner>[0]>[0], session: OAuthSession) => Promise<T>;

/** A reference to a token: the refresh token itself, or the session that an access token names. */
export type TokenReference = { readonly refreshToken: string } | { readonly sessionId: string };

/** Clients, requests for access, grants and the sign-ins of applications. The rules are functions of the schema `auth`. */
export type OAuthStore = ClientStore & {
  begin(request: AuthorizationRequest, clientInfo: ClientInfo): Promise<string>;
  /** Opens a request; null if it has expired, is decided, or was opened by another user before. */
  open(id: string, userId: string): Promise<OpenedAuthorization | null>;
  /** Returns the code for the application; null if the user may not decide. */
  approve(id: string, approval: Approval, grantDays: number, clientInfo: ClientInfo): Promise<string | null>;
  deny(id: string, userId: string): Promise<boolean>;
  /** Exchanges a code; null if the code is refused. */
  exchange<T>(exchange: CodeExchange, clientInfo: ClientInfo, sign: SignTokens<T>): Promise<T | null>;
  /** Refreshes a session; null if the token is refused. */
  refresh<T>(token: string, clientId: string, clientInfo: ClientInfo, sign: SignTokens<T>): Promise<T | null>;
  findSession(clientId: string, reference: TokenReference): Promise<GrantedSession | null>;
  revoke(clientId: string, reference: TokenReference, clientInfo: ClientInfo): Promise<void>;
  grants(userId: string): Promise<readonly ListedGrant[]>;
  withdraw(userId: string, clientId: string, clientInfo: ClientInfo): Promise<boolean>;
};

/** The seconds between the request of the application and the decision of the user. */
const AUTHORIZATION_SECONDS = 600;
/** The seconds between the decision and the exchange of the code. */
const CODE_SECONDS = 120;

const OPEN = `
  select pg_catalog.to_jsonb(opened.request) as request, pg_catalog.to_jsonb(opened.client) operator(pg_catalog.-) 'secret_hash' as client,
    opened.is_granted as "isGranted"
  from auth.open_oauth_authorization($1, $2) as opened`;
const APPROVE = `select auth.approve_oauth_authorization($2, $3, $4, $5, ${CODE_SECONDS}, $6, ${CLIENT_INFO_SQL}) as done`;
const SESSION_COLUMNS = `outcome, claims, (session).grant_id, (session).scopes, (session).resource, expires_at`;
const EXCHANGE = `
  select ${SESSION_COLUMNS}, nonce, signed_in_at from auth.exchange_oauth_code($2, $3, $4, $5, $6, ${CLIENT_INFO_SQL})`;
const REFRESH = `select ${SESSION_COLUMNS} from auth.refresh_oauth_tokens($2, $3, $4, ${CLIENT_INFO_SQL})`;
const FIND_SESSION = `
  select found.user_id as "userId", (found.session).scopes, (found.session).resource, found.issued_at as "issuedAt",
    found.expires_at as "expiresAt"
  from auth.find_oauth_session($1, $2, $3) as found`;
const REVOKE = `select auth.revoke_oauth_token($2, $3, $4, ${CLIENT_INFO_SQL})`;
const LIST_GRANTS = `
  select (listed.client).id as "clientId", (listed.client).name as "clientName", (listed.client).uri as "clientUri",
    (listed.client).logo_uri as "logoUri", (listed.granted).scopes, (listed.granted).resource,
    (listed.granted).granted_at as "grantedAt", (listed.granted).expires_at as "expiresAt", listed.last_used_at as "lastUsedAt"
  from auth.list_oauth_grants($1) as listed`;

export function makeOAuthStore(asOwner: AsOwner): OAuthStore {
  const run = async <Row extends object>(text: string, ...values: readonly unknown[]): Promise<Row | undefined> =>
    (await asOwner((client) => client.query<Row>(text, [...values]))).rows[0];
  const runSafely = async <Row extends object>(text: string, ...values: readonly unknown[]) =>
    (await inOwnerTransaction(asOwner, (client) => client.query<Row>(text, [...values]))).rows[0];

  return {
    ...makeClientStore(asOwner),

    async begin(request, clientInfo) {
      const text = `select auth.begin_oauth_authorization($2, ${AUTHORIZATION_SECONDS}, ${CLIENT_INFO_SQL}) as id`;
      return (await runSafely<{ id: string }>(text, clientInfoParameter(clientInfo), JSON.stringify(request)))!.id;
    },
    open: async (id, userId) => (await runSafely<OpenedAuthorization>(OPEN, id, userId)) ?? null,
    async approve(id, { userId, signedInAt }, grantDays, clientInfo) {
      const code = generateSecret();
      const values = [clientInfoParameter(clientInfo), id, userId, signedInAt, digestOf(code), grantDays];
      return (await runSafely<{ done: boolean }>(APPROVE, ...values))!.done ? code : null;
    },
    async deny(id, userId) {
      return (await runSafely<{ done: boolean }>("select auth.deny_oauth_authorization($1, $2) as done", id, userId))!
        .done;
    },

    exchange({ code, clientId, redirectUri, challenge }, clientInfo, sign) {
      const refreshToken = generateSecret();
      const values = [digestOf(code), clientId, redirectUri, challenge, digestOf(refreshToken)];
      return continueSession(asOwner, [EXCHANGE, clientInfo, values], { clientId, refreshToken }, sign);
    },
    refresh(token, clientId, clientInfo, sign) {
      const refreshToken = generateSecret();
      const values = [digestOf(token), digestOf(refreshToken), clientId];
      return continueSession(asOwner, [REFRESH, clientInfo, values], { clientId, refreshToken }, sign);
    },

    findSession: async (clientId, reference) =>
      (await run<GrantedSession>(FIND_SESSION, clientId, ...referenceParameters(reference))) ?? null,
    async revoke(clientId, reference, clientInfo) {
      await runSafely(REVOKE, clientInfoParameter(clientInfo), clientId, ...referenceParameters(reference));
    },
    async grants(userId) {
      return (await asOwner((client) => client.query<ListedGrant>(LIST_GRANTS, [userId]))).rows;
    },
    async withdraw(userId, clientId, clientInfo) {
      const text = `select auth.withdraw_oauth_grant($2, $3, ${CLIENT_INFO_SQL}) as done`;
      return (await runSafely<{ done: boolean }>(text, clientInfoParameter(clientInfo), userId, clientId))!.done;
    },
  };
}

/** Continues a session. A refusal is committed, too: it may have ended the sign-in of a stolen token. */
function continueSession<T>(
  asOwner: AsOwner,
  [text, clientInfo, values]: readonly [string, ClientInfo, readonly unknown[]],
  { clientId, refreshToken }: { readonly clientId: string; readonly refreshToken: string },
  sign: SignTokens<T>,
): Promise<T | null> {
  return inOwnerTransaction(asOwner, async (client) => {
    const { rows } = await client.query<SessionRow>(text, [clientInfoParameter(clientInfo), ...values]);
    const { outcome, claims, grant_id: id, scopes, resource, expires_at: expiresAt, ...proof } = rows[0]!;
    if (outcome !== "passed" && outcome !== "rotated") return null;
    const grant = { id, clientId, scopes, resource, expiresAt };
    const { nonce = null, signed_in_at: signedInAt = null } = proof;
    return sign(client, { grant, claims, refreshToken, nonce, signedInAt });
  });
}

function referenceParameters(reference: TokenReference): readonly [Buffer | null, string | null] {
  return "refreshToken" in reference ? [digestOf(reference.refreshToken), null] : [null, reference.sessionId];
}
