import { hash, randomUUID } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { type GatewayResponse, HttpError, type ResponseBody } from "#http";
import { isJsonObject } from "#runtime/json";

/** Of the protocol: its messages say all themselves, without a session. */
export const STATELESS_VERSION = "2026-07-28";

/** What a server may ask of a client that has declared it. */
const ASKABLE = ["elicitation", "sampling", "roots"] as const;
type Askable = (typeof ASKABLE)[number];

/** A session of 2025-11-25: what the client has declared with `initialize`. */
export type ClientSession = { readonly id: string; readonly askable: readonly Askable[] };

/** Null for requests of 2026-07-28, which knows no sessions, and of clients that cannot be asked anything. */
export function sessionOf(
  { "mcp-session-id": id, "mcp-protocol-version": version }: IncomingHttpHeaders,
  owner: string,
): ClientSession | null {
  if (typeof id !== "string" || version === STATELESS_VERSION) return null;
  const found = readSession(id, owner);
  if (found) return found;
  throw new HttpError(404, "RESOURCE_NOT_FOUND", "Session not found.", { hint: "Initialize again." });
}

/** Gives the client its session with the response to `initialize`. */
export function withNewSession(
  response: GatewayResponse<ResponseBody>,
  message: unknown,
  owner: string,
): GatewayResponse<ResponseBody> {
  if (!isJsonObject(message) || message.method !== "initialize" || response.status !== 200) return response;
  const id = isJsonObject(message.params) ? startSession(message.params.capabilities, owner) : null;
  return id === null ? response : { ...response, headers: { ...response.headers, "Mcp-Session-Id": id } };
}

/**
 * The session of a client that can be asked something; others need none. Its id contains what it says and a hash that
 * binds it to its caller. So each process can read it and none keeps it. A caller can only make up own sessions.
 */
function startSession(capabilities: unknown, owner: string): string | null {
  const askable = ASKABLE.filter((name) => isJsonObject(capabilities) && isAskable(name, capabilities));
  if (askable.length === 0) return null;
  const said = `${randomUUID()}.${askable.join("-")}`;
  return `${said}.${bind(said, owner)}`;
}

/** Null for a session of another caller, and for what is no session. */
function readSession(id: string, owner: string): ClientSession | null {
  const [random = "", names = "", bound, ...others] = id.split(".");
  if (others.length > 0 || bound !== bind(`${random}.${names}`, owner)) return null;
  const given = names.split("-");
  return { id, askable: ASKABLE.filter((name) => given.includes(name)) };
}

/** Whether the client shows questions as forms to its user: so says an elicitation without modes, or with this one. */
export function canAskUser(capabilities: unknown): boolean {
  return isJsonObject(capabilities) && isAskable("elicitation", capabilities);
}

/** As `canAskUser`, of a session. */
export function asksUser(session: ClientSession | null): boolean {
  return session?.askable.includes("elicitation") ?? false;
}

function isAskable(name: Askable, { [name]: declared }: Readonly<Record<string, unknown>>): boolean {
  if (!isJsonObject(declared)) return false;
  return name !== "elicitation" || declared.form !== undefined || declared.url === undefined;
}

function bind(said: string, owner: string): string {
  return hash("sha256", `${said}.${owner}`, "base64url");
}
