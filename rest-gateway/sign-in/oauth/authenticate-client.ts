import { timingSafeEqual } from "node:crypto";
import { digestOf } from "#accounts";
import type { GatewayRequest } from "#http";
import type { ClientStore, OAuthClient } from "./client-store.ts";
import { invalidClient, OAuthError } from "./oauth-error.ts";

const CHALLENGE = { "WWW-Authenticate": 'Basic realm="oauth", charset="UTF-8"' };

type ClientCredentials = { readonly id: string; readonly secret: string | null };

/** Authenticates the client of a request to the token endpoint and related ones (RFC 6749 §2.3); throws 401. */
export async function authenticateClient(
  request: Pick<GatewayRequest, "headers">,
  parameters: URLSearchParams,
  { findClient }: Pick<ClientStore, "findClient">,
): Promise<OAuthClient> {
  try {
    const { id, secret } = readClientCredentials(request, parameters);
    const client = await findClient(id);
    if (client && provesItself(client, secret)) return client;
    throw invalidClient("The client is unknown, or its secret is wrong.");
  } catch (thrown) {
    // RFC 6749 §5.2 requires a challenge for clients that have used the header.
    const isChallenged =
      thrown instanceof OAuthError && thrown.status === 401 && request.headers.authorization !== undefined;
    throw isChallenged ? new OAuthError(thrown.error, thrown.message, { status: 401, headers: CHALLENGE }) : thrown;
  }
}

/** Returns true if the client is authenticated. A client without a secret must not send one, which would be another client's. */
function provesItself({ secret_hash: expected }: OAuthClient, secret: string | null): boolean {
  if (expected === null || secret === null) return expected === null && secret === null;
  return timingSafeEqual(digestOf(secret), expected);
}

function readClientCredentials(
  { headers }: Pick<GatewayRequest, "headers">,
  parameters: URLSearchParams,
): ClientCredentials {
  const inBody = { id: parameters.get("client_id") ?? "", secret: parameters.get("client_secret") || null };
  const [, encoded] = /^basic +(\S+)$/i.exec(headers.authorization?.trim() ?? "") ?? [];
  if (encoded === undefined) {
    if (inBody.id === "") throw invalidClient("Send client_id.");
    return inBody;
  }
  const text = Buffer.from(encoded, "base64").toString("utf8");
  const colon = text.indexOf(":");
  if (colon < 1) throw invalidClient("The Basic credentials are malformed.");
  const id = decodeFormText(text.slice(0, colon));
  if (inBody.secret !== null || (inBody.id !== "" && inBody.id !== id)) {
    throw new OAuthError("invalid_request", "Send the credentials of the client in one way only.");
  }
  return { id, secret: decodeFormText(text.slice(colon + 1)) || null };
}

/** Decodes a part of the header (RFC 6749 §2.3.1): both parts are encoded as in a form. */
function decodeFormText(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll("+", " "));
  } catch {
    throw invalidClient("The Basic credentials are malformed.");
  }
}
