import { ApiError } from "../../engine/errors.ts";
import type { Routes } from "../gateway.ts";
import { type GatewayRequest, json } from "../http.ts";
import type { AuthDependencies } from "./auth-dependencies.ts";
import { clientInfoOf } from "./client-info.ts";
import { identifyUser } from "./credentials.ts";

const BACKUP_CODES_WARNING =
  "Store these codes where you can reach them without your phone. Each works once, and they are not shown again.";

/** Routes for the authenticator app of the signed-in user. */
export function factorRoutes(services: AuthDependencies): Routes {
  const { factors } = services.accounts;
  return {
    "/api/mfa/enable": {
      POST: async (request) => {
        const { userId } = await identifyUser(request, services);
        const { secret, qrCode } = await factors.enroll(userId, clientInfoOf(request));
        const message = "Scan the QR code with an authenticator app, then send the code it shows to /api/mfa/verify.";
        return json(200, { secret, qrCode, message });
      },
    },
    "/api/mfa/verify": {
      POST: async (request) => {
        const { userId } = await identifyUser(request, services);
        const { backupCodes } = await factors.enable(userId, readCode(request), clientInfoOf(request));
        const message = "Two-factor authentication is enabled. Sign-in now requires a code.";
        return json(200, { message, backupCodes, warning: BACKUP_CODES_WARNING });
      },
    },
    "/api/mfa/disable": {
      POST: async (request) => {
        const { userId } = await identifyUser(request, services);
        await factors.disable(userId, readCode(request), clientInfoOf(request));
        return json(200, { message: "Two-factor authentication is disabled." });
      },
    },
    "/api/mfa/backup-codes": {
      POST: async (request) => {
        const { userId } = await identifyUser(request, services);
        const { backupCodes } = await factors.renewBackupCodes(userId, readCode(request), clientInfoOf(request));
        return json(200, {
          message: "The previous backup codes are no longer valid.",
          backupCodes,
          warning: BACKUP_CODES_WARNING,
        });
      },
    },
  };
}

function readCode({ rawQuery }: GatewayRequest): string {
  const code = new URLSearchParams(rawQuery).get("code");
  if (code) return code;
  throw new ApiError(400, "MISSING_FIELD", "Missing required parameter: code.", {
    details: [{ field: "code", message: "Send it in the query: ?code=123456" }],
  });
}
