import type { BodyLimit } from "../../engine/caller/body-limit.ts";

/** Enough for names, passwords, tokens and SAML assertions. The caller is not authenticated yet. */
export const SIGN_IN_BODY: BodyLimit = { bytes: 64 * 1024, isAnonymous: true };
