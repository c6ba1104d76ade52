import pg from "pg";
import { type Administration, readUserId, type SecondFactor, type UserJson } from "#accounts";
import { type Caller, isActedAs, isAdministrator } from "#accounts/identity";
import { clientInfoOf, type GatewayResponse, type HttpError, jsonResponse, toHttpError } from "#http";
import { authenticateTableCaller } from "#rest-gateway/table/authenticate";
import {
  readChanges,
  readInvitation,
  readLinkRequest,
  readNewUser,
  readPageRequest,
  readPassword,
  readUuid,
} from "./admin-request.ts";
import {
  type AuthRequest,
  type AuthRouteHandler,
  type AuthV1Routes,
  type AuthV1Services,
  readJsonBody,
  requireSecondFactor,
} from "./auth-v1-request.ts";
import { invalidEmail, readCodeRequest } from "./code-request.ts";
import { type AuthErrorCode, authError } from "./errors.ts";
import { toPasskeyJson } from "./passkey-routes.ts";

/** The roles that GoTrue accepts as administrators by default. Our administrators are accepted, too. */
const ADMINISTRATIVE_ROLES: ReadonlySet<string> = new Set(["service_role", "supabase_admin"]);

const NEEDS_LEVEL_2 = [403, "AAL2 required to administer users"] as const;

type AdministrativeRequest = { readonly request: AuthRequest; readonly administration: Administration };
type UserRequest = AdministrativeRequest & { readonly userId: string };
type AdministrativeHandler<Request> = (request: Request) => Promise<GatewayResponse>;

/** Administration of accounts, for servers and administrators: tokens and keys of the roles service_role and admin. */
export function adminRoutes(services: AuthV1Services): AuthV1Routes {
  return { ...userRoutes(services), ...linkRoutes(services), ...factorRoutes(services) };
}

function userRoutes(services: AuthV1Services): AuthV1Routes {
  const forUser = makeUserRoute(services);
  const forAdministrators = makeAdministrativeRoute(services);
  return {
    "GET /admin/users": forAdministrators(listUsers),
    "POST /admin/users": forAdministrators(async ({ request, administration }) => {
      const { user, secret } = readNewUser(await readJsonBody(request));
      return userResponse(administration, await administration.create(user, secret).catch(explainRefusal));
    }),
    "GET /admin/users/{user}": forUser(({ administration, userId }) => userResponse(administration, userId)),
    "PUT /admin/users/{user}": forUser(async ({ request, administration, userId }) => {
      const body = await readJsonBody(request);
      const isFound = await administration.change(userId, readChanges(body), readPassword(body)).catch(explainRefusal);
      if (!isFound) throw userNotFound();
      return userResponse(administration, userId);
    }),
    "DELETE /admin/users/{user}": forUser(async ({ request, administration, userId }) => {
      const { should_soft_delete: keepsRow } = await readJsonBody(request);
      const isFound = await administration.remove(userId, { keepsRow: keepsRow === true }).catch((error: unknown) => {
        throw explainDeletion(error);
      });
      if (!isFound) throw userNotFound();
      return jsonResponse(200, {});
    }),
  };
}

/** Explains a refused deletion: rows that refer to the account keep it, and the error names their table. */
function explainDeletion(error: unknown): unknown {
  if (!(error instanceof pg.DatabaseError) || error.code !== "23503") return error;
  const holder = `${error.schema}.${error.table}`;
  const message = `Database error deleting user: rows of ${holder} refer to the user. Delete them first, or let the foreign key cascade`;
  return authError(409, "conflict", message);
}

function linkRoutes(services: AuthV1Services): AuthV1Routes {
  const { accounts } = services;
  const forAdministrators = makeAdministrativeRoute(services);
  return {
    "POST /invite": forAdministrators(async ({ request, administration }) => {
      const body = await readJsonBody(request);
      const { redirectTo } = readCodeRequest(services, request, body);
      const invitation = { ...readInvitation(body), redirectTo };
      const userId = await accounts.links.invite(invitation, clientInfoOf(request)).catch(explainRefusal);
      return userResponse(administration, userId);
    }),
    "POST /admin/generate_link": forAdministrators(async ({ request, administration }) => {
      const body = await readJsonBody(request);
      const { redirectTo } = readCodeRequest(services, request, body);
      const asked = { ...readLinkRequest(body), redirectTo };
      const { userId, type, link } = await accounts.links.make(asked, clientInfoOf(request)).catch(explainRefusal);
      return jsonResponse(200, {
        ...(await readUser(administration, userId)),
        action_link: link.url,
        email_otp: link.code,
        hashed_token: link.token,
        verification_type: type,
        redirect_to: redirectTo,
      });
    }),
  };
}

function factorRoutes(services: AuthV1Services): AuthV1Routes {
  const { secondFactors, passkeys } = services.accounts;
  const forUser = makeUserRoute(services);
  return {
    "GET /admin/users/{user}/factors": forUser(async ({ userId }) =>
      jsonResponse(200, (await secondFactors.list(userId)).map(toFactorJson)),
    ),
    "DELETE /admin/users/{user}/factors/{factor}": forUser(async ({ request, administration, userId }) => {
      const id = readUuid(request, "factor");
      const factor = (await secondFactors.list(userId)).find((candidate) => candidate.id === id);
      if (!factor || !(await administration.deleteFactor(userId, id))) {
        throw authError(404, "mfa_factor_not_found", "Factor not found");
      }
      return jsonResponse(200, toFactorJson(factor));
    }),
    "GET /admin/users/{user}/passkeys": forUser(async ({ userId }) =>
      jsonResponse(200, (await passkeys.list(userId)).map(toPasskeyJson)),
    ),
    "DELETE /admin/users/{user}/passkeys/{passkey}": forUser(async ({ request, userId }) => {
      await passkeys.remove(userId, readUuid(request, "passkey"), clientInfoOf(request));
      return { status: 204, headers: {}, body: null };
    }),
  };
}

function toFactorJson({ id, factorType, friendlyName, isVerified, ...times }: SecondFactor): object {
  const { createdAt, updatedAt, lastChallengedAt } = times;
  return {
    id,
    friendly_name: friendlyName,
    factor_type: factorType,
    status: isVerified ? "verified" : "unverified",
    created_at: createdAt,
    updated_at: updatedAt,
    ...(lastChallengedAt && { last_challenged_at: lastChallengedAt }),
  };
}

async function readUser(administration: Administration, userId: string): Promise<UserJson> {
  const user = await administration.readUser(userId);
  if (!user) throw userNotFound();
  return user;
}

async function userResponse(administration: Administration, userId: string): Promise<GatewayResponse> {
  return jsonResponse(200, await readUser(administration, userId));
}

/** Requires a key or a token like /rest/v1, with a role for servers. */
export function makeAdministrativeRoute({
  accounts,
  authenticator,
}: Pick<AuthV1Services, "accounts" | "authenticator">) {
  return (handle: AdministrativeHandler<AdministrativeRequest>): AuthRouteHandler =>
    async (request) => {
      const caller = await authenticateTableCaller(request, authenticator, false);
      if (caller.kind === "anonymous") {
        throw authError(401, "no_authorization", "This endpoint requires a valid Bearer token");
      }
      if (!mayAdminister(caller)) throw authError(403, "not_admin", "User not allowed");
      request.admit(caller);
      // Administrators could remove their own second factor here.
      if (caller.kind !== "key") await requireSecondFactor({ caller }, { accounts }, NEEDS_LEVEL_2);
      const clientInfo = { ...clientInfoOf(request), actor: readUserId(caller.claims) };
      return handle({ request, administration: accounts.administrationBy(clientInfo) });
    };
}

function mayAdminister(caller: Caller): boolean {
  return (ADMINISTRATIVE_ROLES.has(caller.role) || isAdministrator(caller)) && !isActedAs(caller);
}

function makeUserRoute(services: Pick<AuthV1Services, "accounts" | "authenticator">) {
  const forAdministrators = makeAdministrativeRoute(services);
  return (handle: AdministrativeHandler<UserRequest>): AuthRouteHandler =>
    forAdministrators(async ({ request, administration }) => {
      const userId = await administration.findUser(readUuid(request, "user"));
      if (userId === null) throw userNotFound();
      return handle({ request, administration, userId });
    });
}

async function listUsers({ request, administration }: AdministrativeRequest): Promise<GatewayResponse> {
  const page = readPageRequest(request.query);
  const { total, users } = await administration.list(page);
  const lastPage = Math.ceil(total / page.perPage);
  const headers = { "X-Total-Count": String(total), Link: pageLinks(request, page.page, lastPage) };
  return jsonResponse(200, { users, aud: "authenticated" }, headers);
}

/** Returns the links to pages. The page is the first parameter, because auth-js reads it there. */
export function pageLinks({ path, query }: AuthRequest, page: number, lastPage: number): string {
  const linkTo = (target: number, relation: string): string => {
    const others = [...query].filter(([name]) => name !== "page");
    return `<${path}?${new URLSearchParams([["page", String(target)], ...others])}>; rel="${relation}"`;
  };
  return [...(page < lastPage ? [linkTo(page + 1, "next")] : []), linkTo(lastPage, "last")].join(", ");
}

function userNotFound(): HttpError {
  return authError(404, "user_not_found", "User not found");
}

/** Errors for values that another user has, by field. */
const TAKEN: Readonly<Record<string, readonly [AuthErrorCode, string]>> = {
  email: ["email_exists", "A user with this email address has already been registered"],
  username: ["email_exists", "A user with this email address has already been registered"],
  phone: ["phone_exists", "Phone number already registered by another user"],
};

function explainRefusal(error: unknown): never {
  const { code, status, details } = toHttpError(error);
  const [name, message] = (status === 409 && typeof details === "string" && TAKEN[details]) || [];
  if (name && message) throw authError(422, name, message);
  if (status === 404) throw authError(404, "user_not_found", "User with this email not found");
  if (code === "WRONG" && details === "email") throw invalidEmail();
  throw error;
}
