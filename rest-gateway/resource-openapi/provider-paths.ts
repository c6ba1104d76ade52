import type { Schema } from "../openapi/table-document/type-schema.ts";
import { CSRF, type DescribedPaths, OPTIONAL_TEXT, PAIR, SIGNED_IN, TEXT } from "./described.ts";
import { object } from "./object-schema.ts";

const NAME = { name: "name", in: "path", required: true, description: "Of the provider", schema: TEXT };
const TARGET: Schema = { ...OPTIONAL_TEXT, description: "Where the browser ends: here, or one of SIGN_IN_REDIRECTS" };

const LISTED = object({
  name: TEXT,
  title: TEXT,
  kind: { type: "string", enum: ["oidc", "oauth2", "saml"] },
  address: { ...TEXT, description: "Where a browser is sent to sign in" },
});

/** Signing in through others, as far as programs ask for it: browsers are led through the rest. */
export const PROVIDER_PATHS: DescribedPaths = {
  "/auth/providers": {
    get: {
      id: "identityProviders.list",
      tag: "Providers",
      summary: "Through whom one can sign in",
      answers: { 200: ["The providers", object({ providers: { type: "array", items: LISTED } })] },
    },
  },
  "/auth/providers/exchange": {
    post: {
      id: "identityProviders.exchange",
      tag: "Providers",
      summary: "Exchange the code that the browser came back with for tokens",
      body: object({ code: TEXT }, { codeVerifier: OPTIONAL_TEXT }),
      answers: { 200: ["A pair of tokens", PAIR] },
      refusals: [403, 413, 415],
    },
  },
  "/auth/providers/code": {
    post: {
      id: "identityProviders.code",
      tag: "Providers",
      summary: "Send the code of the authenticator app that is owed after the provider's sign-in",
      body: object({ code: TEXT }),
      answers: {
        200: ["Signed in for a session, whose cookie comes with the answer", SIGNED_IN],
        303: ["Done, and on to where the sign-in is to end", null],
      },
      refusals: [403, 413, 415],
    },
  },
  "/auth/providers/{name}/link": {
    post: {
      id: "identityProviders.link",
      tag: "Providers",
      summary: "Sign in by this provider, too, from now on",
      parameters: [NAME, CSRF],
      body: object({}, { redirectTo: TARGET }),
      answers: { 200: ["Where a browser is sent to agree", object({ address: TEXT })] },
      refusals: [403, 404, 413, 415, 502],
    },
  },
  "/auth/providers/{name}/sign-out": {
    post: {
      id: "identityProviders.signOut",
      tag: "Providers",
      summary: "End the session, and learn where a browser ends the provider's",
      parameters: [NAME, CSRF],
      body: object({}, { redirectTo: TARGET }),
      answers: { 200: ["Signed out", object({ message: TEXT, address: OPTIONAL_TEXT })] },
      refusals: [403, 404, 413, 415],
    },
  },
};
