import type { FactorChallenge, FactorEnrolmentResult, FactorRefusal, FactorType } from "#accounts";
import { clientInfoOf, jsonResponse } from "#http";
import type { ApiError } from "#runtime";
import {
  type AuthRequest,
  type AuthV1Routes,
  type AuthV1Services,
  authenticateUser,
  readJsonBody,
  readObject,
  readText,
} from "./auth-v1-request.ts";
import { authError, validationFailed } from "./errors.ts";
import { toSessionJson } from "./session-json.ts";

const MAX_TEXT_LENGTH = 100;

/** Routes for second factors: authenticator apps and security keys. */
export function factorRoutes(services: AuthV1Services): AuthV1Routes {
  const { secondFactors } = services.accounts;
  return {
    "POST /factors": async (request) => {
      const { userId, sessionId } = await authenticateUser(request, services);
      const body = await readJsonBody(request);
      const factor = {
        factorType: readFactorType(readText(body, "factor_type")),
        friendlyName: readShortText(body, "friendly_name"),
        issuer: readShortText(body, "issuer") || services.config.jwtIssuer,
      };
      const result = await secondFactors.enroll({ userId, sessionId }, factor, clientInfoOf(request));
      return jsonResponse(200, toEnrolmentJson(result, factor.friendlyName));
    },
    "POST /factors/{factor}/challenge": async (request) => {
      const { userId } = await authenticateUser(request, services);
      const challenge = await secondFactors.challenge(userId, readFactorId(request), clientInfoOf(request));
      if (!challenge) throw factorNotFound();
      return jsonResponse(200, toChallengeJson(challenge));
    },
    "POST /factors/{factor}/verify": verifyFactor(services),
    "DELETE /factors/{factor}": async (request) => {
      const { userId, sessionId } = await authenticateUser(request, services);
      const factorId = readFactorId(request);
      const outcome = await secondFactors.remove({ userId, sessionId }, factorId, clientInfoOf(request));
      if (outcome === "missing") throw factorNotFound();
      if (outcome === "level") throw authError(422, "insufficient_aal", "AAL2 required to unenroll verified factor");
      return jsonResponse(200, { id: factorId });
    },
  };
}

function verifyFactor(services: AuthV1Services): AuthV1Routes[string] {
  const { secondFactors, authSessions } = services.accounts;
  return async (request) => {
    const { userId, sessionId } = await authenticateUser(request, services);
    const body = await readJsonBody(request);
    const webauthn = readObject(body, "webauthn");
    const code = readText(body, "code");
    if (webauthn === null && code === "") throw validationFailed("Code needs to be non-empty");
    const response = { challengeId: readText(body, "challenge_id"), code, credential: webauthn?.credential_response };
    const signIn = { userId, sessionId };
    const { continueSignIn } = authSessions;
    const factorId = readFactorId(request);
    const result = await secondFactors.verify(signIn, factorId, response, clientInfoOf(request), continueSignIn);
    if (result.outcome === "passed") return jsonResponse(200, toSessionJson(result.opened));
    throw result.outcome === "code" && webauthn !== null ? keyRefused() : refusals[result.outcome]();
  };
}

const refusals: Readonly<Record<FactorRefusal, () => ApiError>> = {
  missing: factorNotFound,
  challenge: () => authError(422, "mfa_factor_not_found", "MFA factor with the provided challenge ID not found"),
  expired: () =>
    authError(
      422,
      "mfa_challenge_expired",
      "MFA challenge has expired, verify against another challenge or create a new challenge.",
    ),
  address: () => authError(422, "mfa_ip_address_mismatch", "Challenge and verify IP addresses mismatch."),
  disabled: () => authError(403, "user_banned", "User is banned"),
  level: () => authError(403, "insufficient_aal", "AAL2 required to verify a new factor"),
  session: () => authError(403, "session_not_found", "Session from session_id claim in JWT does not exist"),
  code: () => authError(422, "mfa_verification_failed", "Invalid TOTP code entered"),
};

function keyRefused(): ApiError {
  return authError(422, "mfa_verification_failed", "Invalid WebAuthn response");
}

function factorNotFound(): ApiError {
  return authError(404, "mfa_factor_not_found", "Factor not found");
}

function readFactorId({ parameters }: AuthRequest): string {
  return parameters.factor!;
}

function readFactorType(text: string): FactorType {
  if (text === "totp" || text === "webauthn") return text;
  if (text === "phone") throw authError(422, "mfa_phone_enroll_not_enabled", "MFA enroll is disabled for Phone");
  throw validationFailed("factor_type needs to be totp, phone, or webauthn");
}

export function readShortText(body: Parameters<typeof readText>[0], name: string): string {
  const text = readText(body, name);
  if (text.length <= MAX_TEXT_LENGTH) return text;
  throw validationFailed(`${name} must have at most ${MAX_TEXT_LENGTH} characters`);
}

function toEnrolmentJson(result: FactorEnrolmentResult, friendlyName: string): object {
  switch (result.outcome) {
    case "added": {
      const { factor, totp } = result;
      return {
        id: factor.id,
        type: factor.factorType,
        friendly_name: factor.friendlyName,
        ...(totp && { totp: { qr_code: totp.qrCodeSvg, secret: totp.secret, uri: totp.uri } }),
      };
    }
    case "name_taken": {
      const message = `A factor with the friendly name "${friendlyName}" for this user already exists`;
      throw authError(422, "mfa_factor_name_conflict", message);
    }
    case "too_many":
      throw authError(
        422,
        "too_many_enrolled_mfa_factors",
        "Maximum number of verified factors reached, unenroll to continue",
      );
    case "level":
      throw authError(403, "insufficient_aal", "AAL2 required to enroll a new factor");
    case "no_account":
      throw authError(403, "user_not_found", "User from sub claim in JWT does not exist");
  }
}

function toChallengeJson({ id, factorType, expiresAt, keyRequest }: FactorChallenge): object {
  return {
    id,
    type: factorType,
    expires_at: Math.floor(expiresAt.getTime() / 1000),
    ...(keyRequest && {
      webauthn: { type: keyRequest.type, credential_options: { publicKey: keyRequest.options } },
    }),
  };
}
