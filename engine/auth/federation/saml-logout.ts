import { promisify } from "node:util";
import { inflateRaw } from "node:zlib";
import type { Profile, SAML } from "@node-saml/node-saml";
import { ApiError } from "../../errors.ts";
import { assertionInvalid } from "./federation-errors.ts";
import type { CallbackRequest, LogoutMessage } from "./provider.ts";
import {
  checkDestination,
  checkMessage,
  decodeMessage,
  invalidMessage,
  MAX_MESSAGE_BYTES,
  rootAttribute,
} from "./saml-message.ts";

const PARAMETERS: readonly string[] = ["SAMLRequest", "SAMLResponse", "RelayState", "SigAlg", "Signature"];
const STRONG_SIGNATURE = /#rsa-sha(256|384|512)$/;
/** The maximum age of a logout request. */
const MAX_AGE_MS = 5 * 60_000;

/** Verifies a LogoutRequest or a LogoutResponse, by the POST or the redirect binding. */
export async function readLogoutMessage(
  saml: SAML,
  { query, form }: CallbackRequest,
  ourAddress: string,
): Promise<LogoutMessage> {
  const isPosted = form.size > 0;
  const {
    SAMLRequest,
    SAMLResponse,
    RelayState = "",
    ...signature
  } = readParameters(isPosted ? form : new URLSearchParams(query));
  const kind = SAMLRequest === undefined ? "LogoutResponse" : "LogoutRequest";
  const encoded = (SAMLRequest ?? SAMLResponse)!;
  const xml = isPosted ? decodeMessage(encoded) : await inflateMessage(encoded);
  checkMessage(xml, kind);
  checkDestination(xml, ourAddress);

  const verify = (): Promise<{ profile: Profile | null }> => {
    if (!isPosted) return verifyRedirect(saml, { encoded, kind, RelayState, ...signature }, query);
    return kind === "LogoutRequest"
      ? saml.validatePostRequestAsync({ SAMLRequest: encoded })
      : saml.validatePostResponseAsync({ SAMLResponse: encoded });
  };
  const { profile } = await verify().catch((error) => {
    throw assertionInvalid(error);
  });
  if (kind === "LogoutResponse") return { kind: "response", state: RelayState };

  const madeAt = Date.parse(rootAttribute(xml, "IssueInstant") ?? "");
  if (!profile || !(Math.abs(Date.now() - madeAt) < MAX_AGE_MS)) throw invalidMessage("its time is not current");
  return {
    kind: "request",
    message: { id: profile.ID!, expiresAt: new Date(madeAt + MAX_AGE_MS) },
    subject: profile.nameID,
    sessionIndex: profile.sessionIndex ?? null,
    responseUrl: (isDone) => saml.getLogoutResponseUrlAsync(profile, RelayState, {}, isDone),
  };
}

/** Refuses duplicate parameters: the signature covers the query text, in which another parser could choose another one. */
function readParameters(given: URLSearchParams): Partial<Record<string, string>> {
  const parameters = Object.fromEntries(given);
  const isOdd =
    given.size !== Object.keys(parameters).length || ![...given.keys()].every((name) => PARAMETERS.includes(name));
  const hasOne = (parameters.SAMLRequest === undefined) !== (parameters.SAMLResponse === undefined);
  if (hasOne && !isOdd) return parameters;
  throw new ApiError(
    400,
    "VALIDATION_ERROR",
    "Send one SAMLRequest or SAMLResponse, with its RelayState and signature.",
  );
}

type RedirectParameters = Partial<Record<string, string>> & { readonly encoded: string; readonly kind: string };

/** Checked here because the library accepts messages without a signature. */
async function verifyRedirect(saml: SAML, { encoded, kind, ...parameters }: RedirectParameters, query: string) {
  if (!parameters.Signature || !STRONG_SIGNATURE.test(parameters.SigAlg ?? ""))
    throw new Error("It is not signed, or its digest is weak");
  const name = kind === "LogoutRequest" ? "SAMLRequest" : "SAMLResponse";
  return saml.validateRedirectAsync({ ...parameters, [name]: encoded }, query);
}

async function inflateMessage(encoded: string): Promise<string> {
  const inflated = await promisify(inflateRaw)(Buffer.from(encoded, "base64"), {
    maxOutputLength: MAX_MESSAGE_BYTES,
  }).catch(() => null);
  if (inflated) return inflated.toString("utf8");
  throw invalidMessage("it cannot be decompressed");
}
