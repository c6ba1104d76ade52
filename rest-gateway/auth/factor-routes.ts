import { ApiError } from "../../engine/errors.ts";
import type { Routes } from "../gateway.ts";
import { type GatewayRequest, json } from "../http.ts";
import { identifyUser } from "./credentials.ts";
import { senderOf } from "./sender.ts";
import type { AuthServices } from "./services.ts";

const WARNING =
  "Keep these codes where you find them without your phone. Each works once, and they are not shown again.";

/** The authenticator app of who is signed in. */
export function factorRoutes(services: AuthServices): Routes {
  const { factors } = services.accounts;
  return {
    "/api/mfa/enable": {
      POST: async (request) => {
        const { userId } = await identifyUser(request, services);
        const { secret, qrCode } = await factors.enroll(userId, senderOf(request));
        const message = "Scan the code with an authenticator app, then send what it shows to /api/mfa/verify.";
        return json(200, { secret, qrCode, message });
      },
    },
    "/api/mfa/verify": {
      POST: async (request) => {
        const { userId } = await identifyUser(request, services);
        const { backupCodes } = await factors.enable(userId, codeOf(request), senderOf(request));
        const message = "From now on signing in asks for a code of the app.";
        return json(200, { message, backupCodes, warning: WARNING });
      },
    },
    "/api/mfa/disable": {
      POST: async (request) => {
        const { userId } = await identifyUser(request, services);
        await factors.disable(userId, codeOf(request), senderOf(request));
        return json(200, { message: "Signing in asks for the password alone." });
      },
    },
    "/api/mfa/backup-codes": {
      POST: async (request) => {
        const { userId } = await identifyUser(request, services);
        const { backupCodes } = await factors.renewBackupCodes(userId, codeOf(request), senderOf(request));
        return json(200, { message: "The backup codes from before have ended.", backupCodes, warning: WARNING });
      },
    },
  };
}

function codeOf({ rawQuery }: GatewayRequest): string {
  const code = new URLSearchParams(rawQuery).get("code");
  if (code) return code;
  throw new ApiError(400, "MISSING_FIELD", "Required, but not there: code.", {
    details: [{ field: "code", message: "Send it in the query: ?code=123456" }],
  });
}
