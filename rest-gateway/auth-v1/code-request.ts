import type { Accounts } from "../../engine/accounts/accounts.ts";
import type { CodeEmails, CodeRequest } from "../../engine/accounts/code-emails.ts";
import { readRedirectTarget } from "../../engine/accounts/federation/read-redirect-target.ts";
import { type AuthRequest, type AuthV1Services, type JsonBody, readText } from "./auth-v1-request.ts";
import { authError, validationFailed } from "./errors.ts";

/** Where the link of an e-mail leads, and the challenge of a client that exchanges a code for tokens (PKCE). */
export function readCodeRequest(
  { config, siteUrl }: Pick<AuthV1Services, "config" | "siteUrl">,
  { query }: AuthRequest,
  body: JsonBody,
): CodeRequest {
  const challenge = readText(body, "code_challenge");
  const method = readText(body, "code_challenge_method").toLowerCase() || "plain";
  if (challenge !== "" && method !== "s256" && method !== "plain") {
    throw validationFailed("code challenge method must be s256 or plain");
  }
  return {
    redirectTo: readRedirect(query.get("redirect_to"), config.applicationUrl ?? siteUrl(), config.signInRedirects),
    codeChallenge: challenge === "" ? null : { challenge, method: method === "s256" ? "s256" : "plain" },
  };
}

/** A URL that is not allowed counts as none, as at Supabase. */
function readRedirect(text: string | null, applicationUrl: string, allowed: readonly string[]): string {
  try {
    return readRedirectTarget({ text, field: "redirect_to" }, applicationUrl, allowed) ?? applicationUrl;
  } catch {
    return applicationUrl;
  }
}

export function requireCodeEmails({ codeEmails }: Pick<Accounts, "codeEmails">): CodeEmails {
  if (codeEmails) return codeEmails;
  throw authError(422, "email_provider_disabled", "This service sends no e-mails");
}
