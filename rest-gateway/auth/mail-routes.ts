import type { Letters } from "../../engine/auth/letters.ts";
import { ApiError } from "../../engine/errors.ts";
import type { Routes } from "../gateway.ts";
import { json } from "../http.ts";
import { identifyUser } from "./credentials.ts";
import { readFields, TEXT } from "./fields.ts";
import { senderOf } from "./sender.ts";
import type { CostlyServices } from "./services.ts";

/** A forgotten password, and the address of who signed up: done by showing that one reads the mail. */
export function mailRoutes(services: CostlyServices): Routes {
  const { letters, mailLinks } = services.accounts;
  return {
    "/auth/forgot-password": {
      POST: async (request) => {
        await services.limitExpensive(request);
        const { email } = await readFields(request, { email: TEXT });
        lettersOf(letters).offerReset(email, senderOf(request));
        return json(202, { message: "If there is an account of that address, a mail is on its way to it." });
      },
    },
    "/auth/reset-password": {
      POST: async (request) => {
        const { token, password } = await readFields(request, { token: TEXT, password: TEXT });
        await mailLinks.resetPassword(token, password, senderOf(request));
        return json(200, { message: "The password is set; all sign-ins from before have ended." });
      },
    },
    "/auth/verify-email": {
      POST: async (request) => {
        const { token } = await readFields(request, { token: TEXT });
        await mailLinks.verifyEmail(token, senderOf(request));
        return json(200, { message: "The address is verified." });
      },
    },
    "/auth/resend-verification": {
      POST: async (request) => {
        await services.limitExpensive(request);
        const { userId } = await identifyUser(request, services);
        lettersOf(letters).offerVerification(userId, senderOf(request));
        return json(202, { message: "A mail is on its way, unless the address is verified or one was just sent." });
      },
    },
  };
}

export function lettersOf(letters: Letters | null): Letters {
  if (letters) return letters;
  throw new ApiError(501, "NOT_IMPLEMENTED", "This service sends no mails.", {
    hint: "Whoever runs it can set SMTP_URL.",
  });
}
