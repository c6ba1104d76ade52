import { hasHiddenCharacters, shortenText } from "#runtime";
import { findUnstorable } from "#runtime/json";
import {
  AUTH_METHODS,
  type ClientAuthMethod,
  type ClientMetadata,
  GRANT_TYPES,
  type OAuthClient,
} from "./client-store.ts";
import { OAuthError } from "./oauth-error.ts";

/** A metadata document with the names of RFC 7591. */
type MetadataDocument = Readonly<Record<string, unknown>>;

const MAX_REDIRECTS = 20;
const MAX_URI_LENGTH = 2_000;
/** The characters of all redirect_uris, joined by spaces. */
const MAX_REDIRECTS_LENGTH = 20_000;
const MAX_NAME_LENGTH = 200;
const LOOPBACK_HOSTS = ["127.0.0.1", "[::1]", "localhost"];

/** Reads the metadata of an application (RFC 7591 §2), and refuses unsafe values. */
export function readClientMetadata(document: MetadataDocument, defaultMethod: ClientAuthMethod): ClientMetadata {
  const redirects = document.redirect_uris;
  if (!Array.isArray(redirects) || redirects.length === 0 || redirects.length > MAX_REDIRECTS) {
    throw new OAuthError("invalid_redirect_uri", `redirect_uris must have 1 to ${MAX_REDIRECTS} addresses.`);
  }
  const uris = [...new Set(redirects.map(readRedirectUri))];
  if (uris.join(" ").length > MAX_REDIRECTS_LENGTH) {
    const message = `redirect_uris must have at most ${MAX_REDIRECTS_LENGTH} characters together.`;
    throw new OAuthError("invalid_redirect_uri", message);
  }
  const named = readText(document, "token_endpoint_auth_method") ?? defaultMethod;
  const method = AUTH_METHODS.find((each) => each === named);
  if (method === undefined) throw invalidMetadata("token_endpoint_auth_method", AUTH_METHODS);
  const responseTypes = readList(document, "response_types", ["code"]);
  if (responseTypes.some((type) => type !== "code")) throw invalidMetadata("response_types", ["code"]);
  const grantTypes = readList(document, "grant_types", GRANT_TYPES);
  if (!grantTypes.includes("authorization_code")) throw invalidMetadata("grant_types", GRANT_TYPES);
  return {
    name: shortenText(readName(document)?.trim() || new URL(uris[0]!).host || uris[0]!, MAX_NAME_LENGTH),
    uri: readWebAddress(document, "client_uri"),
    logo_uri: readWebAddress(document, "logo_uri"),
    redirect_uris: uris,
    // Grant types that this server does not know are not registered.
    grant_types: GRANT_TYPES.filter((type) => grantTypes.includes(type)),
    scope: readScope(document),
    auth_method: method,
  };
}

/** Returns a client with the field names of RFC 7591 and of Supabase's clients. */
export function toClientJson(client: OAuthClient, secret: string | null = null): Readonly<Record<string, unknown>> {
  return {
    client_id: client.id,
    client_name: client.name,
    ...(secret !== null && { client_secret: secret }),
    client_type: client.auth_method === "none" ? "public" : "confidential",
    token_endpoint_auth_method: client.auth_method,
    registration_type: client.registration,
    ...(client.uri !== null && { client_uri: client.uri }),
    ...(client.logo_uri !== null && { logo_uri: client.logo_uri }),
    redirect_uris: client.redirect_uris,
    grant_types: client.grant_types,
    response_types: ["code"],
    ...(client.scope !== null && { scope: client.scope }),
    created_at: client.created_at,
    updated_at: client.updated_at,
  };
}

/**
 * Reads a redirect URI: https, an address of the user's own machine, or a scheme of an app that contains a dot (RFC 8252).
 * Others, such as `javascript:`, would run in the browser.
 */
function readRedirectUri(value: unknown): string {
  const url = typeof value === "string" && value.length <= MAX_URI_LENGTH ? URL.parse(value) : null;
  const isSafe =
    url !== null &&
    !(value as string).includes("#") &&
    !(value as string).includes("*") &&
    url.username === "" &&
    url.password === "" &&
    isWrittenAsParsed(value as string, url) &&
    (url.protocol === "https:" || isLoopback(url) || /^[a-z][a-z0-9+-]*\.[a-z0-9+.-]*:$/.test(url.protocol));
  if (isSafe) return value as string;
  throw new OAuthError(
    "invalid_redirect_uri",
    "A redirect_uri is an https address, one of this machine (http://127.0.0.1/…), or one of an app (com.example.app:/…), without fragment and wildcard, and in the form that browsers send: ASCII, the host in lower case, no default port, no /../.",
  );
}

/** Characters of a URI (RFC 3986). Others could not be sent in the header Location. */
const URI_CHARACTERS = /^[!-~]+$/;
/** The pattern of a host. WHATWG's hosts may also contain `;` and `'`, which separate the directives of a policy. */
const HOST = /^(?:[a-z0-9._-]*|\[[0-9a-f:.]+\])$/;

/** Returns true if a browser uses the address unchanged: people and policies would read a changed one differently. */
function isWrittenAsParsed(address: string, { href, origin, hostname }: URL): boolean {
  const isSame =
    address === href || (href.startsWith(`${origin}/`) && address === origin + href.slice(origin.length + 1));
  return isSame && URI_CHARACTERS.test(address) && HOST.test(hostname);
}

function isLoopback({ protocol, hostname }: URL): boolean {
  return protocol === "http:" && LOOPBACK_HOSTS.includes(hostname);
}

/**
 * Returns true if the address is registered; on the user's own machine any port is accepted, which the application gets at its start (RFC
 * 8252 §7.3).
 */
export function isRegisteredRedirect(
  requested: string,
  { redirect_uris: registered }: Pick<ClientMetadata, "redirect_uris">,
) {
  if (!URI_CHARACTERS.test(requested)) return false;
  if (registered.includes(requested)) return true;
  const url = URL.parse(requested);
  if (!url || !isLoopback(url) || requested.includes("#") || requested.length > MAX_URI_LENGTH) return false;
  if (url.username !== "" || url.password !== "") return false;
  return registered.some((each) => {
    const known = new URL(each);
    return (
      isLoopback(known) &&
      known.hostname === url.hostname &&
      known.pathname + known.search === url.pathname + url.search
    );
  });
}

function readText(document: MetadataDocument, name: string): string | null {
  const value = document[name] ?? null;
  if (value === null || value === "") return null;
  if (typeof value === "string" && value.length <= MAX_URI_LENGTH && findUnstorable(value) === null) return value;
  throw new OAuthError("invalid_client_metadata", `${name} must be a text of at most ${MAX_URI_LENGTH} characters.`);
}

function readName(document: MetadataDocument): string | null {
  const name = readText(document, "client_name");
  if (name === null || !hasHiddenCharacters(name)) return name;
  const message = "client_name must not have characters that are invisible or change the direction of the text.";
  throw new OAuthError("invalid_client_metadata", message);
}

/** Reads the scope (RFC 6749 §3.3). */
function readScope(document: MetadataDocument): string | null {
  const scope = readText(document, "scope");
  if (scope === null || /^[ !#-[\]-~]*$/.test(scope)) return scope;
  throw new OAuthError("invalid_client_metadata", "scope must be a list of ASCII names, separated by spaces.");
}

function readWebAddress(document: MetadataDocument, name: string): string | null {
  const text = readText(document, name);
  const isUnsafe = text !== null && (/\s/.test(text) || hasHiddenCharacters(text));
  if (!isUnsafe && (text === null || /^https?:$/.test(URL.parse(text)?.protocol ?? ""))) return text;
  throw new OAuthError("invalid_client_metadata", `${name} must be a web address.`);
}

function readList(document: MetadataDocument, name: string, initial: readonly string[]): readonly string[] {
  const value = document[name] ?? initial;
  if (Array.isArray(value) && value.every((each) => typeof each === "string"))
    return value.length === 0 ? initial : value;
  throw new OAuthError("invalid_client_metadata", `${name} must be a list of texts.`);
}

function invalidMetadata(name: string, supported: readonly string[]): OAuthError {
  return new OAuthError("invalid_client_metadata", `${name} may have: ${supported.join(", ")}.`);
}
