import { promisify } from "node:util";
import { inflateRaw } from "node:zlib";
import type { Profile, SAML } from "@node-saml/node-saml";
import { ApiError } from "../../errors.ts";
import type { Arrival, Farewell } from "./provider.ts";
import { statementRefused } from "./refusals.ts";
import {
  checkDestination,
  checkMessage,
  decodeMessage,
  MOST_BYTES,
  messageRefused,
  rootAttribute,
} from "./saml-message.ts";

const PARAMETERS: readonly string[] = ["SAMLRequest", "SAMLResponse", "RelayState", "SigAlg", "Signature"];
const STRONG = /#rsa-sha(256|384|512)$/;
/** How old a request to sign out may be. */
const FRESH_MS = 5 * 60_000;

/** Verifies a LogoutRequest or a LogoutResponse, by post or by redirect. */
export async function readFarewell(saml: SAML, { query, form }: Arrival, ourAddress: string): Promise<Farewell> {
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
    throw statementRefused(error);
  });
  if (kind === "LogoutResponse") return { kind: "answered", state: RelayState };

  const madeAt = Date.parse(rootAttribute(xml, "IssueInstant") ?? "");
  if (!profile || !(Math.abs(Date.now() - madeAt) < FRESH_MS)) throw messageRefused("it is not of now");
  return {
    kind: "asked",
    message: { id: profile.ID!, expiresAt: new Date(madeAt + FRESH_MS) },
    subject: profile.nameID,
    sessionIndex: profile.sessionIndex ?? null,
    answerAddress: (isDone) => saml.getLogoutResponseUrlAsync(profile, RelayState, {}, isDone),
  };
}

/** Each once: the signature of a redirect is over its text, in which another reader might find another one first. */
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

type Redirected = Partial<Record<string, string>> & { readonly encoded: string; readonly kind: string };

/** The library takes one without a signature for a good one. */
async function verifyRedirect(saml: SAML, { encoded, kind, ...parameters }: Redirected, query: string) {
  if (!parameters.Signature || !STRONG.test(parameters.SigAlg ?? ""))
    throw new Error("It is not signed, or by a weak digest");
  const name = kind === "LogoutRequest" ? "SAMLRequest" : "SAMLResponse";
  return saml.validateRedirectAsync({ ...parameters, [name]: encoded }, query);
}

async function inflateMessage(encoded: string): Promise<string> {
  const inflated = await promisify(inflateRaw)(Buffer.from(encoded, "base64"), { maxOutputLength: MOST_BYTES }).catch(
    () => null,
  );
  if (inflated) return inflated.toString("utf8");
  throw messageRefused("it cannot be read");
}
