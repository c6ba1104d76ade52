import { inOwnerTransaction } from "#postgres/database";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter } from "../identity/client-info.ts";
import { digestOf, generateSecret } from "../random-secrets.ts";
import { decryptHint, type FederationDependencies } from "./federated-sign-in.ts";
import { asProviderError, assertionInvalid, auditFailures } from "./federation-errors.ts";
import type { SignInOptions } from "./oauth-state-store.ts";
import type { CallbackRequest, FlowChecks, LogoutMessage } from "./provider.ts";
import type { RequestedRedirect } from "./read-redirect-target.ts";

const FIND_SIGN_OUT_HINT =
  "select sign_out_hint from auth.federation_sessions where session_hash = $1 and provider = $2";
const END_SESSIONS = `select auth.end_federation_sessions($2, $3, $4, $5, $6, ${CLIENT_INFO_SQL}) as ended`;
const NO_CHECKS: FlowChecks = { nonce: null, codeVerifier: null, requestId: null };

/** Returns the provider's logout URL for the session; null if there is none. */
export async function beginSignOut(
  { asOwner, providers, protocolOf, stateStore, readRedirectTarget }: FederationDependencies,
  name: string,
  session: string,
  redirectTo: RequestedRedirect,
  browser: string,
): Promise<string | null> {
  const options: SignInOptions = {
    mode: "session",
    redirectTo: readRedirectTarget(redirectTo),
    codeChallenge: null,
    userId: null,
  };
  const provider = await providers.find(name);
  const { rows } = await asOwner((client) =>
    client.query<{ sign_out_hint: string }>(FIND_SIGN_OUT_HINT, [digestOf(session), name]),
  );
  if (!rows[0]) return null;
  const [state, hint] = [generateSecret(), decryptHint(rows[0].sign_out_hint, session)];
  const url = await asProviderError(() => protocolOf(provider).signOutUrl(hint, state));
  if (url === null) return null;
  await stateStore.save(state, { provider: name, purpose: "sign-out", browser }, options, NO_CHECKS);
  return url;
}

/** Handles the provider's logout response or its logout request. Returns the URL to redirect to, or null. */
export async function finishSignOut(
  dependencies: FederationDependencies,
  name: string,
  callback: CallbackRequest,
  browser: string,
  clientInfo: ClientInfo,
): Promise<string | null> {
  const { asOwner, providers, protocolOf, stateStore } = dependencies;
  const provider = await providers.find(name);
  return auditFailures(asOwner, name, clientInfo, async () => {
    const logout = await asProviderError(() => protocolOf(provider).readLogout(callback));
    if (logout.kind === "request") return endSessions(dependencies, name, logout, clientInfo);
    // An unknown state is no error: the user is signed out anyway.
    const saved = await stateStore
      .take(logout.state, { provider: name, purpose: "sign-out", browser })
      .catch(() => null);
    return saved?.options.redirectTo ?? null;
  });
}

/** Handles a logout request of the provider: ends all sessions that came from the provider's session. */
async function endSessions(
  { asOwner }: Pick<FederationDependencies, "asOwner">,
  name: string,
  logout: LogoutMessage & { kind: "request" },
  clientInfo: ClientInfo,
): Promise<string> {
  const { message, subject, sessionIndex } = logout;
  const values = [clientInfoParameter(clientInfo), name, subject, sessionIndex, message.id, message.expiresAt];
  const { rows } = await inOwnerTransaction(asOwner, (client) =>
    client.query<{ ended: number | null }>(END_SESSIONS, values),
  );
  const { ended } = rows[0]!;
  if (ended === null) throw assertionInvalid(new Error("The logout request was used before"));
  return asProviderError(() => logout.responseUrl(ended > 0));
}
