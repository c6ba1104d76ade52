import type { SignOutScope, UpdateOutcome } from "#accounts";
import { clientInfoOf, jsonResponse } from "#http";
import type { JsonObject } from "#runtime/json";
import {
  type AuthRequest,
  type AuthRouteHandler,
  type AuthV1Routes,
  type AuthV1Services,
  authenticateUser,
  readJsonBody,
  readObject,
  readText,
  requireSecondFactor,
} from "./auth-v1-request.ts";
import { readCodeRequest, readPhone, requireCodeEmails } from "./code-request.ts";
import { type AuthErrorCode, authError, validationFailed } from "./errors.ts";
import { signUpHandler } from "./sign-up.ts";

/** Routes for sign-up, and for users' own accounts. */
export function accountRoutes(services: AuthV1Services): AuthV1Routes {
  const { accounts } = services;
  return {
    "POST /signup": signUpHandler(services),
    "GET /user": async (request) => {
      const { userId } = await authenticateUser(request, services);
      return jsonResponse(200, await accounts.own.readJson(userId));
    },
    "PUT /user": userUpdateHandler(services),
    "POST /logout": async (request) => {
      const { userId, sessionId } = await authenticateUser(request, services);
      const scope = readScope(request);
      // A token of the documented routes names no session, so only ending all sessions is sure to end its session.
      await accounts.own.signOut(userId, sessionId, sessionId === null ? "global" : scope, clientInfoOf(request));
      return { status: 204, headers: {}, body: null };
    },
    "GET /reauthenticate": async (request) => {
      const { userId } = await authenticateUser(request, services);
      if ((await accounts.own.readJson(userId)).email === "") {
        throw authError(
          422,
          "validation_failed",
          "Reauthentication requires the user to have an email or a phone number",
        );
      }
      await requireCodeEmails(accounts).requestReauthentication(userId);
      return jsonResponse(200, {});
    },
  };
}

const SIGN_OUT_SCOPES: readonly SignOutScope[] = ["global", "local", "others"];

function readScope({ query }: AuthRequest): SignOutScope {
  const name = query.get("scope") ?? "global";
  const scope = SIGN_OUT_SCOPES.find((each) => each === name);
  if (scope === undefined) throw validationFailed(`Unsupported logout scope "${name}"`);
  return scope;
}

const REFUSALS: Readonly<Record<Exclude<UpdateOutcome, "updated">, readonly [number, AuthErrorCode, string]>> = {
  address_invalid: [400, "validation_failed", "Unable to validate email address: invalid format"],
  address_missing: [
    422,
    "validation_failed",
    "Updating password of an anonymous user without an email or phone is not allowed",
  ],
  address_taken: [422, "email_exists", "A user with this email address has already been registered"],
  code_required: [400, "reauthentication_needed", "Password update requires reauthentication"],
  code_wrong: [422, "reauthentication_not_valid", "Nonce has expired or is invalid"],
  no_emails: [422, "email_provider_disabled", "This service sends no e-mails"],
  same_password: [422, "same_password", "New password should be different from the old password."],
};

const NEEDS_LEVEL_2 = [401, "AAL2 session is required to update email or password when MFA is enabled."] as const;

/** Changes metadata, the password and the e-mail address of the signed-in user. */
function userUpdateHandler(services: AuthV1Services): AuthRouteHandler {
  const { accounts } = services;
  return async (request) => {
    const user = await authenticateUser(request, services);
    const body = await readJsonBody(request);
    if (body.app_metadata !== undefined) {
      throw authError(403, "not_admin", "Updating app_metadata requires admin privileges");
    }
    const phone = readPhone(body);
    if (phone !== "" && phone !== (await accounts.own.readJson(user.userId)).phone) {
      throw authError(400, "phone_provider_disabled", "Phone numbers cannot be changed");
    }
    const changes = {
      metadata: readObject(body, "data"),
      email: textOrNull(body, "email")?.toLowerCase() ?? null,
      password: textOrNull(body, "password"),
      code: textOrNull(body, "nonce"),
    };
    if (changes.email !== null || changes.password !== null) {
      await requireSecondFactor(user, services, NEEDS_LEVEL_2);
    }
    const codeRequest = readCodeRequest(services, request, body);
    const outcome = await accounts.updateUser(user, changes, codeRequest, clientInfoOf(request));
    if (outcome !== "updated") throw authError(...REFUSALS[outcome]);
    return jsonResponse(200, await accounts.own.readJson(user.userId));
  };
}

function textOrNull(body: JsonObject, name: string): string | null {
  return readText(body, name) || null;
}
