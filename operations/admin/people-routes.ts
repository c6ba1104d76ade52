import { type Administration, type AuditLogFilter, isUuid, readAuditLog } from "#accounts";
import { makeProviders } from "#accounts/federation";
import { keepsEmails } from "#accounts/mail";
import { listSignInSettings } from "#config";
import { clientInfoOf, type HttpError, jsonResponse } from "#http";
import type {
  AuditPage,
  InvitedUser,
  KeptEmails,
  ProviderList,
  SessionList,
  SignInSettingList,
  UserKeys,
} from "#operations/admin-types";
import { readFields, TEXT } from "#rest-gateway/sign-in";
import { invalidRequest, resourceNotFound } from "./admin-errors.ts";
import { type AdminRequest, type AdminRoutes, type AdminServices, NO_CONTENT } from "./admin-request.ts";
import { requireEmail, sendSample } from "./send-sample.ts";

const PAGE_SIZE = 50;
const MAX_PAGE_SIZE = 500;
const EVENT_PATTERN = /^[\w.-]{1,100}$/;

/** Sessions, the audit log, e-mails of development, identity providers, and the settings of sign-in. */
export function peopleRoutes(services: AdminServices): AdminRoutes {
  return { ...sessionRoutes(services), ...invitationRoutes(services), ...recordRoutes(services) };
}

function invitationRoutes({ accounts }: AdminServices): AdminRoutes {
  const requireInvitations = () => {
    if (!accounts) throw resourceNotFound("This database has no accounts.");
    return accounts.invitations;
  };
  return {
    "POST /invitations": async ({ request, userId, logEvent }) => {
      const invitation = await readFields(request, { email: TEXT, role: TEXT });
      requireEmail(invitation.email);
      const invitations = requireInvitations();
      await logEvent("studio.user_invited", invitation);
      const key = await invitations.send(invitation, { ...clientInfoOf(request), actor: userId });
      const id = (await accounts!.administrationBy(clientInfoOf(request)).readUser(key))?.id ?? "";
      const invited: InvitedUser = { id };
      return jsonResponse(201, invited);
    },
    "POST /invitations/sample": async ({ request, userId, logEvent }) => {
      const { email } = await readFields(request, { email: TEXT });
      const invitations = requireInvitations();
      await logEvent("studio.email_sample_sent", { name: "invitation", email });
      await sendSample(email, (to) => invitations.sendSample(to, { ...clientInfoOf(request), actor: userId }));
      return NO_CONTENT;
    },
  };
}

function sessionRoutes(services: AdminServices): AdminRoutes {
  return {
    "GET /user-keys": async ({ request, userId }) => {
      const ids = request.query.getAll("user").filter(isUuid).slice(0, MAX_PAGE_SIZE);
      const found: UserKeys = { keys: await administrationBy(services, { request, userId }).findKeys(ids) };
      return jsonResponse(200, found);
    },
    "GET /sessions": async ({ request, userId }) => {
      const administration = administrationBy(services, { request, userId });
      const user = request.query.get("user");
      const list: SessionList = {
        sessions: await administration.listSessions(user === null ? null : await findUser(administration, user)),
      };
      return jsonResponse(200, list);
    },
    "DELETE /sessions": async ({ request, userId, logEvent }) => {
      const administration = administrationBy(services, { request, userId });
      const user = request.query.get("user") ?? "";
      const affected = await findUser(administration, user);
      await logEvent("studio.sessions_ended", { user });
      await administration.endSessions(affected);
      return NO_CONTENT;
    },
    "DELETE /sessions/{session}": async ({ request, userId, logEvent }) => {
      const administration = administrationBy(services, { request, userId });
      const { session = "" } = request.parameters;
      const affected = await administration.findSessionUser(session);
      if (affected === null) throw resourceNotFound("There is no such session, or it has ended.");
      await logEvent("studio.session_ended", { session });
      await administration.endSession(affected, session);
      return NO_CONTENT;
    },
  };
}

function recordRoutes(services: AdminServices): AdminRoutes {
  const { asOwner, config, everywhere } = services;
  const keys = () => Promise.reject(new Error("The list of providers needs no secret"));
  const providers = makeProviders(asOwner, keys);
  return {
    "GET /audit-log": async ({ request, userId }) => {
      const filter = await readFilter(services, { request, userId });
      // Reads one entry more than it sends, to find out if there are others.
      const entries = await readAuditLog(asOwner, { ...filter, limit: filter.limit + 1 });
      if (!entries) throw resourceNotFound("This database has no audit log.");
      const shown = entries.slice(0, filter.limit);
      const page: AuditPage = { entries: shown, next: entries.length > shown.length ? shown.at(-1)!.id : null };
      return jsonResponse(200, page);
    },
    "GET /mails": async () => {
      const mails = [...(await everywhere.recentEmails())].sort((a, b) => b.at.localeCompare(a.at));
      const emails: KeptEmails = { kept: keepsEmails(config), mails };
      return jsonResponse(200, emails);
    },
    "GET /sign-in-settings": () => {
      const list: SignInSettingList = { settings: listSignInSettings(config) };
      return jsonResponse(200, list);
    },
    "GET /providers": async () => {
      const listed = services.accounts ? await providers.list() : [];
      const list: ProviderList = {
        providers: listed.map(({ clientId, signUps, ...provider }) => ({
          ...provider,
          client_id: clientId,
          sign_ups: signUps,
        })),
      };
      return jsonResponse(200, list);
    },
  };
}

function administrationBy(
  { accounts }: Pick<AdminServices, "accounts">,
  { request, userId }: Pick<AdminRequest, "request" | "userId">,
): Administration {
  if (!accounts) throw resourceNotFound("This database has no accounts.");
  return accounts.administrationBy({ ...clientInfoOf(request), actor: userId });
}

async function findUser(administration: Administration, user: string): Promise<string> {
  const userId = isUuid(user) ? await administration.findUser(user) : null;
  if (userId === null) throw resourceNotFound("User not found.");
  return userId;
}

async function readFilter(
  services: AdminServices,
  { request, userId }: Pick<AdminRequest, "request" | "userId">,
): Promise<AuditLogFilter> {
  const { query } = request;
  const user = query.get("user") || null;
  const event = query.get("event") || null;
  if (event !== null && !EVENT_PATTERN.test(event)) throw invalidParameter("event", "the name of an event");
  return {
    userId: user && (await findUser(administrationBy(services, { request, userId }), user)),
    event,
    from: readTime(query, "from"),
    to: readTime(query, "to"),
    before: readNumber(query, "before"),
    limit: Math.min(Number(readNumber(query, "limit") ?? PAGE_SIZE), MAX_PAGE_SIZE),
  };
}

function readNumber(query: URLSearchParams, name: string): string | null {
  const text = query.get(name) || null;
  if (text === null || /^[1-9]\d{0,17}$/.test(text)) return text;
  throw invalidParameter(name, "a whole number above 0");
}

function readTime(query: URLSearchParams, name: string): Date | null {
  const text = query.get(name) || null;
  if (text === null) return null;
  const time = new Date(text);
  if (/^\d{4}-\d\d-\d\d/.test(text) && !Number.isNaN(time.getTime())) return time;
  throw invalidParameter(name, "a time such as 2027-12-31T00:00:00Z");
}

function invalidParameter(name: string, expected: string): HttpError {
  return invalidRequest(`The parameter ${name} must be ${expected}.`);
}
