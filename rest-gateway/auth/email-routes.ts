import type { AccountEmails } from "../../engine/auth/account-emails.ts";
import { ApiError } from "../../engine/errors.ts";
import type { Routes } from "../gateway.ts";
import { json } from "../http.ts";
import type { LimitedAuthDependencies } from "./auth-dependencies.ts";
import { readFields, TEXT } from "./body-fields.ts";
import { clientInfoOf } from "./client-info.ts";
import { identifyUser } from "./credentials.ts";

/** Password reset and e-mail verification, by links in e-mails. */
export function emailRoutes(services: LimitedAuthDependencies): Routes {
  const { emails, emailLinks } = services.accounts;
  return {
    "/auth/forgot-password": {
      POST: async (request) => {
        await services.limitExpensive(request);
        const { email } = await readFields(request, { email: TEXT });
        requireEmails(emails).sendReset(email, clientInfoOf(request));
        return json(202, { message: "If an account with this address exists, an e-mail was sent to it." });
      },
    },
    "/auth/reset-password": {
      POST: async (request) => {
        const { token, password } = await readFields(request, { token: TEXT, password: TEXT });
        await emailLinks.resetPassword(token, password, clientInfoOf(request));
        return json(200, { message: "The password is set. All earlier sessions and tokens are revoked." });
      },
    },
    "/auth/verify-email": {
      POST: async (request) => {
        const { token } = await readFields(request, { token: TEXT });
        await emailLinks.verifyEmail(token, clientInfoOf(request));
        return json(200, { message: "The address is verified." });
      },
    },
    "/auth/resend-verification": {
      POST: async (request) => {
        await services.limitExpensive(request);
        const { userId } = await identifyUser(request, services);
        requireEmails(emails).sendVerification(userId, clientInfoOf(request));
        return json(202, {
          message: "An e-mail is sent, unless the address is verified or one was sent within the last minute.",
        });
      },
    },
  };
}

export function requireEmails(emails: AccountEmails | null): AccountEmails {
  if (emails) return emails;
  throw new ApiError(501, "NOT_IMPLEMENTED", "This service sends no e-mails.", {
    hint: "The operator can set SMTP_URL.",
  });
}
