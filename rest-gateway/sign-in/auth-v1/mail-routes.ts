import { type AuthSession, type CodePurpose, type CodeResult, PKCE_PREFIX } from "#accounts";
import { clientInfoOf, type GatewayResponse, jsonResponse } from "#http";
import type { JsonObject } from "#runtime/json";
import {
  type AuthRequest,
  type AuthRouteHandler,
  type AuthV1Routes,
  type AuthV1Services,
  readJsonBody,
  readObject,
  readText,
} from "./auth-v1-request.ts";
import { errorParameters, redirect, sessionParameters, withFragment, withQuery } from "./client-redirect.ts";
import {
  readCodeRequest,
  readEmail,
  readPhone,
  readRedirect,
  requireCodeEmails,
  requirePhones,
} from "./code-request.ts";
import { authError, validationFailed } from "./errors.ts";
import { toSessionJson } from "./session-json.ts";

const ACCEPTED = jsonResponse(200, {});
const HALF_CONFIRMED = "Confirmation link accepted. Please proceed to confirm link sent to the other email";

/** Routes for sign-in, confirmation and recovery by links and codes in e-mails. */
export function mailRoutes(services: AuthV1Services): AuthV1Routes {
  return {
    "POST /otp": otpHandler(services),
    "POST /magiclink": otpHandler(services),
    "POST /recover": recoveryHandler(services),
    "POST /resend": resendHandler(services),
    "POST /verify": codeHandler(services),
    "GET /verify": linkHandler(services),
  };
}

function otpHandler(services: AuthV1Services): AuthRouteHandler {
  const { accounts, config, limitExpensive } = services;
  return async (request) => {
    const body = await readJsonBody(request);
    const [phone, channel] = [readText(body, "phone"), readText(body, "channel")];
    if (readText(body, "email") !== "" && phone !== "") {
      throw validationFailed("Only an email address or phone number should be provided");
    }
    const createsUser = body.create_user !== false;
    const metadata = readObject(body, "data") ?? {};
    const newUser = createsUser && config.signUps ? { metadata } : null;
    if (phone !== "") {
      const phones = requirePhones(accounts, channel);
      const number = readPhone(body);
      await limitExpensive(request);
      await phones.requestSignIn(number, newUser, clientInfoOf(request));
      return ACCEPTED;
    }
    if (channel !== "") throw validationFailed("Channel should only be specified with Phone OTP");
    const email = readEmail(body);
    const codeRequest = readCodeRequest(services, request, body);
    const codeEmails = requireCodeEmails(accounts);
    await limitExpensive(request);
    // If a sign-up reveals that an address has an account, this may too.
    if (!createsUser && config.autoConfirm && !(await codeEmails.hasAccount(email))) {
      throw authError(422, "otp_disabled", "Signups not allowed for otp");
    }
    await codeEmails.requestSignIn(email, codeRequest, newUser, clientInfoOf(request));
    return ACCEPTED;
  };
}

function recoveryHandler(services: AuthV1Services): AuthRouteHandler {
  return async (request) => {
    const body = await readJsonBody(request);
    if (readText(body, "email") === "") throw validationFailed("Password recovery requires an email");
    const email = readEmail(body);
    const codeRequest = readCodeRequest(services, request, body);
    const codeEmails = requireCodeEmails(services.accounts);
    await services.limitExpensive(request);
    await codeEmails.requestRecovery(email, codeRequest, clientInfoOf(request));
    return ACCEPTED;
  };
}

const RESENT_TYPES = ["signup", "email_change", "sms", "phone_change"];

function resendHandler(services: AuthV1Services): AuthRouteHandler {
  return async (request) => {
    const body = await readJsonBody(request);
    const [type, email, phone] = [readText(body, "type"), readText(body, "email"), readText(body, "phone")];
    if (!RESENT_TYPES.includes(type)) {
      throw validationFailed("Missing one of these types: signup, email_change, sms, phone_change");
    }
    if (email !== "" && phone !== "") {
      throw validationFailed("Only an email address or phone number should be provided.");
    }
    if (phone !== "" || type === "sms" || type === "phone_change") {
      return resendText(services, request, { type, body });
    }
    if (email === "") throw validationFailed("Type provided requires an email address");
    const address = readEmail(body);
    const codeRequest = readCodeRequest(services, request, body);
    const codeEmails = requireCodeEmails(services.accounts);
    await services.limitExpensive(request);
    if (type === "signup") await codeEmails.requestConfirmation(address, codeRequest, null);
    else await codeEmails.repeatEmailChange(address, codeRequest);
    return ACCEPTED;
  };
}

async function resendText(
  { accounts, limitExpensive }: AuthV1Services,
  request: AuthRequest,
  { type, body }: { readonly type: string; readonly body: JsonObject },
): Promise<GatewayResponse> {
  const phones = requirePhones(accounts, "");
  const phone = readPhone(body);
  if (phone === "") throw validationFailed("Type provided requires a phone number");
  await limitExpensive(request);
  // A phone number cannot be changed here.
  if (type === "sms") await phones.repeatCode(phone);
  return ACCEPTED;
}

/** The purposes of links and codes that a client may use, by type. */
const PURPOSES: Readonly<Record<string, readonly CodePurpose[]>> = {
  // The confirmation of an address may have been requested by a sign-up or by a sign-in without a password.
  signup: ["signup", "magiclink"],
  invite: ["invite"],
  magiclink: ["magiclink"],
  recovery: ["recovery"],
  email: ["signup", "magiclink", "invite"],
  email_change: ["email_change_current", "email_change_new"],
  sms: ["sms", "sms_signup"],
  phone_change: ["phone_change"],
};

function purposesOf(type: string): readonly CodePurpose[] {
  if (type === "") throw validationFailed("Verify requires a verification type");
  if (!Object.hasOwn(PURPOSES, type)) throw validationFailed("Invalid email verification type");
  return PURPOSES[type]!;
}

/** Handles codes that a user enters, and links of templates that lead to a page of the application. */
function codeHandler({ accounts }: AuthV1Services): AuthRouteHandler {
  const { open } = accounts.authSessions;
  const verify = (request: AuthRequest, body: JsonObject): Promise<CodeResult<AuthSession>> => {
    const [code, tokenHash, email, phone] = ["token", "token_hash", "email", "phone"].map((name) =>
      readText(body, name),
    );
    const purposes = purposesOf(readText(body, "type"));
    if ((code === "") === (tokenHash === "")) {
      throw validationFailed("Verify requires either a token or a token hash");
    }
    if (tokenHash) {
      if (email || phone) throw validationFailed("Only the token_hash and type should be provided");
      return accounts.codes.useLink({ token: tokenHash, purposes, isRedirect: false }, clientInfoOf(request), open);
    }
    if (Boolean(email) === Boolean(phone)) {
      throw validationFailed("Only an email address or phone number should be provided on verify");
    }
    const address = email ? readEmail(body) : readPhone(body);
    return accounts.codes.useCode({ address, code: code!, purposes }, clientInfoOf(request), open);
  };
  return async (request) => {
    const body = await readJsonBody(request);
    const result = await verify(request, body);
    if (result.kind === "opened") return jsonResponse(200, toSessionJson(result.opened));
    if (result.kind === "half") return jsonResponse(200, { msg: HALF_CONFIRMED, code: "200" });
    throw refusalOf(result, readText(body, "token") === "" ? "Email link" : "Token");
  };
}

/** Handles links that browsers open: the session, or a code for it (PKCE), is in the URL of the redirect. */
function linkHandler(services: AuthV1Services): AuthRouteHandler {
  const { accounts } = services;
  const { open } = accounts.authSessions;
  const verify = async (request: AuthRequest, target: URL, token: string): Promise<URL> => {
    const type = request.query.get("type") ?? "";
    const purposes = purposesOf(type);
    const result = await accounts.codes.useLink({ token, purposes, isRedirect: true }, clientInfoOf(request), open);
    if (result.kind === "opened") return withFragment(target, { ...sessionParameters(result.opened.tokens), type });
    if (result.kind === "flow") return withQuery(target, { code: result.code });
    if (result.kind === "half") return withMessage(target, token, { message: HALF_CONFIRMED });
    throw refusalOf(result, "Email link");
  };
  return async (request) => {
    // Programs that check links send HEAD, which must not use them up.
    if (request.method === "HEAD") return { status: 200, headers: {}, body: null };
    const token = request.query.get("token") || request.query.get("token_hash") || "";
    if (token === "") throw validationFailed("Verify requires a token or a token hash");
    const target = new URL(readRedirect(services, request));
    try {
      return redirect(await verify(request, target, token));
    } catch (thrown) {
      return redirect(withMessage(target, token, errorParameters(thrown)));
    }
  };
}

/** Adds the message to the URL. Clients of PKCE read the query, others the fragment. */
function withMessage(target: URL, token: string, message: Readonly<Record<string, string>>): URL {
  return withFragment(token.startsWith(PKCE_PREFIX) ? withQuery(target, message) : target, message);
}

function refusalOf(result: Exclude<CodeResult<unknown>, { kind: "opened" | "half" }>, subject: "Email link" | "Token") {
  switch (result.kind) {
    case "disabled":
      return authError(403, "user_banned", "User is banned");
    case "wait":
      return authError(429, "over_request_rate_limit", "Request rate limit reached", {
        headers: { "Retry-After": String(result.seconds) },
      });
    case "flow_expired":
      return authError(400, "flow_state_not_found", "No associated flow state found");
    default:
      return subject === "Token"
        ? authError(403, "otp_expired", "Token has expired or is invalid")
        : authError(403, "otp_expired", "Email link is invalid or has expired");
  }
}

/** Exchanges the code of a sign-in for a session (PKCE). */
export function pkceGrant({ accounts, federation }: AuthV1Services): AuthRouteHandler {
  const { open } = accounts.authSessions;
  return async (request) => {
    const body = await readJsonBody(request);
    const [code, verifier] = [readText(body, "auth_code"), readText(body, "code_verifier")];
    if (code === "" || verifier === "") {
      throw validationFailed("invalid request: both auth code and code verifier should be non-empty");
    }
    const result = await accounts.flows.exchange(
      { code, verifier },
      clientInfoOf(request),
      open,
      federation.finishLink,
    );
    switch (result.kind) {
      case "opened":
        return jsonResponse(200, toSessionJson(result.opened));
      case "verifier":
        throw authError(400, "bad_code_verifier", "code challenge does not match previously saved code verifier");
      case "expired":
        throw authError(422, "flow_state_expired", "invalid flow state, flow state has expired");
      case "disabled":
        throw authError(403, "user_banned", "User is banned");
      case "absent":
        throw authError(404, "flow_state_not_found", "invalid flow state, no valid flow state found");
    }
  };
}
