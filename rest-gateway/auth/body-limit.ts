import type { BodyLimit } from "../../engine/caller/body-limit.ts";

/** Ample for names, passwords, tokens and SAML's assertions. Who signs in is not known yet. */
export const SIGN_IN_BODY: BodyLimit = { bytes: 64 * 1024, isAnonymous: true };
