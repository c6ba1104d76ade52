import type { Passkey, PasskeyChallenge } from "#accounts";
import { clientInfoOf, jsonResponse } from "#http";
import type { JsonObject } from "#runtime/json";
import {
  type AuthRequest,
  type AuthV1Routes,
  type AuthV1Services,
  authenticateUser,
  readJsonBody,
  readText,
  requireSecondFactor,
  type SignedInUser,
} from "./auth-v1-request.ts";
import { readShortText } from "./factor-routes.ts";
import { toSessionJson } from "./session-json.ts";

/** Routes for passkeys, with which users sign in. */
export function passkeyRoutes(services: AuthV1Services): AuthV1Routes {
  const { passkeys, authSessions } = services.accounts;
  return {
    "POST /passkeys/registration/options": async (request) => {
      const { userId } = await authenticateFully(request, services);
      return jsonResponse(200, toChallengeJson(await passkeys.beginRegistration(userId)));
    },
    "POST /passkeys/registration/verify": async (request) => {
      const { userId } = await authenticateFully(request, services);
      const response = readResponse(await readJsonBody(request));
      const passkey = await passkeys.finishRegistration(userId, response, clientInfoOf(request));
      const { isBackupEligible: backup_eligible, isBackedUp: backed_up, transports } = passkey;
      return jsonResponse(200, { ...toPasskeyJson(passkey), backup_eligible, backed_up, transports });
    },
    "POST /passkeys/authentication/options": async () =>
      jsonResponse(200, toChallengeJson(await passkeys.beginSignIn())),
    "POST /passkeys/authentication/verify": async (request) => {
      const response = readResponse(await readJsonBody(request));
      return jsonResponse(
        200,
        toSessionJson(await passkeys.finishSignIn(response, clientInfoOf(request), authSessions.open)),
      );
    },
    "GET /passkeys": async (request) => {
      const { userId } = await authenticateUser(request, services);
      return jsonResponse(200, (await passkeys.list(userId)).map(toPasskeyJson));
    },
    "PATCH /passkeys/{passkey}": async (request) => {
      const { userId } = await authenticateFully(request, services);
      const name = readShortText(await readJsonBody(request), "friendly_name");
      return jsonResponse(200, toPasskeyJson(await passkeys.rename(userId, request.parameters.passkey!, name)));
    },
    "DELETE /passkeys/{passkey}": async (request) => {
      const { userId } = await authenticateFully(request, services);
      await passkeys.remove(userId, request.parameters.passkey!, clientInfoOf(request));
      return { status: 204, headers: {}, body: null };
    },
  };
}

/** Requires both factors: a passkey stands for both, so somebody who knows only the password may not add one. */
async function authenticateFully(request: AuthRequest, services: AuthV1Services): Promise<SignedInUser> {
  const user = await authenticateUser(request, services);
  await requireSecondFactor(user, services, [403, "AAL2 required to change passkeys"]);
  return user;
}

function readResponse(body: JsonObject): { challengeId: string; credential: unknown } {
  return { challengeId: readText(body, "challenge_id"), credential: body.credential };
}

function toChallengeJson({ challengeId, options, expiresAt }: PasskeyChallenge<object>): object {
  return { challenge_id: challengeId, options, expires_at: Math.floor(expiresAt.getTime() / 1000) };
}

export function toPasskeyJson({ id, friendlyName, createdAt, lastUsedAt }: Passkey): object {
  return {
    id,
    friendly_name: friendlyName,
    created_at: createdAt,
    ...(lastUsedAt && { last_used_at: lastUsedAt }),
  };
}
