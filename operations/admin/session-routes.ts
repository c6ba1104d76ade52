import { createHash } from "node:crypto";
import { resolve } from "node:path";
import { ensurePlaygroundUser, type IssuedToken, readUserId, SESSION_CLAIM } from "#accounts";
import { type Caller, isActedAs, isAdministrator } from "#accounts/identity";
import { bypassesPolicies } from "#catalog";
import { type Config, isLoopbackHost } from "#config";
import { type GatewayRequest, HttpError, jsonResponse, type PatternRoutes } from "#http";
import type { AdminSession, StudioSettings, ViewedToken } from "#operations/admin-types";
import { authenticateCaller, LOOPBACK_ADDRESS } from "#rest-gateway/authenticate";
import { OPTIONAL_TEXT, readFields } from "#rest-gateway/sign-in";
import { CREDENTIALS_REQUIRED } from "#runtime";
import { invalidRequest, permissionDenied } from "./admin-errors.ts";
import type { AdminRoutes, AdminServices } from "./admin-request.ts";
import { makeEventLog } from "./event-log.ts";
import { issuedToken, requireRole, requireTokens, tokenAsUser, userOf } from "./issued-tokens.ts";

const ADMINISTRATOR = "admin";
/** The user and password of a connection string. */
const CREDENTIALS = /(?<=^\w+:\/\/)[^/?]*@/;
/** Matches headers of requests that come from another machine, even if the proxy that sent them is near. */
const FORWARDING_HEADER = /^(?:x-forwarded|forwarded$|via$|x-real-ip$|(?:x|true)-client-ip$|cf-|x-cluster)/;

/** `POST /session`: a token for Studio, which keeps it in memory and sends it with every other request. */
export function sessionRoutes(services: AdminServices): PatternRoutes {
  const { config } = services;
  const makeLogEvent = makeEventLog(services);
  return {
    "POST /session": async (request) => {
      const caller = await authenticateCaller(request, services);
      const isOwn = isAdministrator(caller) && !isActedAs(caller);
      const isLocal = !isOwn && config.studio === "open" && isFromThisMachine(request);
      if (!isOwn && !isLocal) throw caller.kind === "anonymous" ? signInRequired(config) : administratorRequired();
      const token = isLocal
        ? issuedToken(await tokenOnThisMachine(services))
        : await tokenOfAdministrator(request, caller, services);
      const logEvent = makeLogEvent({ request, userId: isLocal ? null : readUserId(caller.claims) });
      await logEvent("studio.opened", { credential: isLocal ? "none" : caller.kind });
      const session: AdminSession = { ...token, role: ADMINISTRATOR, studio: await studioState(services) };
      return jsonResponse(200, session);
    },
  };
}

/** `POST /view-as`: a token of a role or of a user, to see their view. */
export function viewAsRoutes(services: AdminServices): AdminRoutes {
  return {
    "POST /view-as": async ({ request, caller, logEvent }) => {
      const { role, user } = await readFields(request, { role: OPTIONAL_TEXT, user: OPTIONAL_TEXT });
      if ((role === null) === (user === null)) throw invalidRequest("Send either a role or a user.");
      const tokens = requireTokens(services);
      const token =
        role === null ? await tokenAsUser(user!, caller.claims, services) : tokens.asRole(role, caller.claims);
      const viewed = { role: String(token.claims.role), user: readUserId(token.claims) };
      requireRole(viewed.role, services);
      refuseBypass(viewed.role, services);
      await logEvent("studio.viewed_as", viewed);
      const { access_token, expires_at } = issuedToken(token);
      const sent: ViewedToken = { access_token, expires_at, role: viewed.role, claims: token.claims };
      return jsonResponse(200, sent);
    },
  };
}

/** On a playground, the token names a user, so that `auth.uid()` is not null in the first row that somebody inserts. */
async function tokenOnThisMachine(services: AdminServices): Promise<IssuedToken> {
  const { accounts, asOwner, authenticator, config, log } = services;
  const tokens = requireTokens(services);
  const withoutUser = tokens.forRole(ADMINISTRATOR);
  if (!config.isPlayground || !accounts) return withoutUser;
  try {
    const token = await tokens.forUserInRole(await ensurePlaygroundUser(asOwner), ADMINISTRATOR);
    return token && !(await authenticator.validateClaims(token.claims)) ? token : withoutUser;
  } catch (err) {
    // A trigger of the project, or the function of CLAIMS_HOOK, may refuse the user. Studio is where that is fixed.
    log.warn({ err }, "Studio acts as no user, because its user could not be created");
    return withoutUser;
  }
}

/** Returns the administrator's own bearer token, with its own end. For a session it makes a token that ends with the session. */
async function tokenOfAdministrator(request: GatewayRequest, caller: Caller, services: AdminServices) {
  const bearer = /^\s*bearer\s+(\S+)\s*$/i.exec(request.headers.authorization ?? "")?.[1];
  if (bearer !== undefined) {
    return { access_token: bearer, expires_at: caller.expiresAt, user: userOf(caller.claims) };
  }
  const userId = readUserId(caller.claims);
  if (caller.kind !== "session" || userId === null) {
    throw permissionDenied("Studio needs the session of an administrator, or a token as Authorization: Bearer.");
  }
  const token = await requireTokens(services).forUser(userId, caller.claims[SESSION_CLAIM]);
  if (!token || token.claims.role !== ADMINISTRATOR) throw administratorRequired();
  return issuedToken(token);
}

/** Refuses a role that bypasses RLS: it has the power of SQL as the owner, so it needs the setting STUDIO_SQL. */
function refuseBypass(name: string, { catalog, config }: AdminServices): void {
  if (config.studioSql || !bypassesPolicies(catalog(), name)) return;
  throw permissionDenied(`The role "${name}" is not bound by policies: to view rows as it, set STUDIO_SQL=true.`);
}

/** True if the request comes from this machine and from our page, not from a page whose name was made to resolve to this machine (DNS rebinding). */
function isFromThisMachine({ headers, connection }: GatewayRequest): boolean {
  const { host = "", origin } = headers;
  return (
    LOOPBACK_ADDRESS.test(connection().address ?? "") &&
    !Object.keys(headers).some((name) => FORWARDING_HEADER.test(name)) &&
    isLoopbackHost(URL.parse(`http://${host}`)?.hostname ?? "") &&
    headers["sec-fetch-site"] === "same-origin" &&
    typeof origin === "string" &&
    URL.parse(origin)?.host === host
  );
}

async function studioState({ config, schemaChanges }: AdminServices): Promise<StudioSettings> {
  const { studio, studioSql, nodeEnv, graphqlExplorer } = config;
  return {
    mode: studio,
    sql: studioSql,
    migrations: await schemaChanges.mode(),
    development: nodeEnv !== "production",
    graphiql: graphqlExplorer,
    project: projectOf(config),
  };
}

/** Returns a digest, because neither folders nor connection strings are for browsers. */
function projectOf({ databaseUrl, dataDir, branch }: Config): string {
  const place = databaseUrl === null ? resolve(dataDir) : databaseUrl.replace(CREDENTIALS, "").replace(/\?.*/s, "");
  return createHash("sha256")
    .update(JSON.stringify([place, branch]))
    .digest("hex")
    .slice(0, 16);
}

function signInRequired({ studio }: Config): HttpError {
  const advice = studio === "open" ? ", or use Studio in a browser on the machine of the service" : "";
  return new HttpError(401, "AUTH_REQUIRED", `Sign in as an administrator first${advice}.`, {
    challenge: CREDENTIALS_REQUIRED,
  });
}

function administratorRequired(): HttpError {
  return permissionDenied("Studio is only for administrators: sign in as one, or send a token of one.");
}
