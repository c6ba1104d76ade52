import { type AccountEmails, signInOf } from "#accounts";
import { clientInfoOf, type GatewayRequest, type GatewayRoutes, HttpError, jsonResponse } from "#http";
import { type AuthDependencies, authenticateUser, type LimitedAuthDependencies } from "#rest-gateway/authenticate";
import { readFields, TEXT } from "../request/read-body.ts";

export const BACKUP_CODES_WARNING =
  "Store these codes where you can reach them without your phone. Each works once, and they are not shown again.";

/** Routes for password reset and e-mail verification, by links in e-mails. */
export function emailRoutes(services: LimitedAuthDependencies): GatewayRoutes {
  const { emails, emailLinks } = services.accounts;
  return {
    "/auth/forgot-password": {
      POST: async (request) => {
        await services.limitExpensive(request);
        const { email } = await readFields(request, { email: TEXT });
        requireEmails(emails).sendReset(email, clientInfoOf(request));
        return jsonResponse(202, { message: "If an account with this address exists, an e-mail was sent to it." });
      },
    },
    "/auth/reset-password": {
      POST: async (request) => {
        const { token, password } = await readFields(request, { token: TEXT, password: TEXT });
        await emailLinks.resetPassword(token, password, clientInfoOf(request));
        return jsonResponse(200, { message: "The password is set. All earlier sessions and tokens are revoked." });
      },
    },
    "/auth/verify-email": {
      POST: async (request) => {
        const { token } = await readFields(request, { token: TEXT });
        await emailLinks.verifyEmail(token, clientInfoOf(request));
        return jsonResponse(200, { message: "The address is verified." });
      },
    },
    "/auth/resend-verification": {
      POST: async (request) => {
        await services.limitExpensive(request);
        const { userId } = await authenticateUser(request, services);
        requireEmails(emails).sendVerification(userId, clientInfoOf(request));
        return jsonResponse(202, {
          message: "An e-mail is sent, unless the address is verified or one was sent within the last minute.",
        });
      },
    },
  };
}

export function requireEmails(emails: AccountEmails | null): AccountEmails {
  if (emails) return emails;
  throw new HttpError(501, "NOT_IMPLEMENTED", "This service sends no e-mails.", {
    hint: "The operator can set SMTP_URL.",
  });
}

/** Routes for the authenticator app of the signed-in user. */
export function factorRoutes(services: AuthDependencies): GatewayRoutes {
  const { factors } = services.accounts;
  return {
    "/api/mfa/enable": {
      POST: async (request) => {
        const { userId, caller } = await authenticateUser(request, services);
        const { secret, qrCode } = await factors.enroll(userId, clientInfoOf(request), signInOf(caller.claims));
        const message = "Scan the QR code with an authenticator app, then send the code it shows to /api/mfa/verify.";
        return jsonResponse(200, { secret, qrCode, message });
      },
    },
    "/api/mfa/verify": {
      POST: async (request) => {
        const { userId, caller } = await authenticateUser(request, services);
        const [code, signIn] = [readCodeParameter(request), signInOf(caller.claims)];
        const { backupCodes } = await factors.enable(userId, code, clientInfoOf(request), signIn);
        const message = "Two-factor authentication is enabled. Sign-in now requires a code.";
        return jsonResponse(200, { message, backupCodes, warning: BACKUP_CODES_WARNING });
      },
    },
    "/api/mfa/disable": {
      POST: async (request) => {
        const { userId } = await authenticateUser(request, services);
        await factors.disable(userId, readCodeParameter(request), clientInfoOf(request));
        return jsonResponse(200, { message: "Two-factor authentication is disabled." });
      },
    },
    "/api/mfa/backup-codes": {
      POST: async (request) => {
        const { userId } = await authenticateUser(request, services);
        const { backupCodes } = await factors.renewBackupCodes(
          userId,
          readCodeParameter(request),
          clientInfoOf(request),
        );
        return jsonResponse(200, {
          message: "The previous backup codes are no longer valid.",
          backupCodes,
          warning: BACKUP_CODES_WARNING,
        });
      },
    },
  };
}

function readCodeParameter({ rawQuery }: GatewayRequest): string {
  const code = new URLSearchParams(rawQuery).get("code");
  if (code) return code;
  throw new HttpError(400, "MISSING_FIELD", "Missing required parameter: code.", {
    details: [{ field: "code", message: "Send it in the query: ?code=123456" }],
  });
}
