import { hash, randomUUID } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { type GatewayResponse, HttpError, type ResponseBody } from "#http";
import { isJsonObject } from "#runtime/json";

/** The SDK, which is loaded with the first request. */
export type McpSdk = typeof import("@modelcontextprotocol/server");

/** The protocol version whose messages are complete in themselves, without a session. */
export const STATELESS_VERSION = "2026-07-28";

/** The requests that a server may send to a client that has declared them. */
const ASKABLE = ["elicitation", "sampling", "roots"] as const;
type Askable = (typeof ASKABLE)[number];

/** A session of 2025-11-25, with the capabilities that the client has declared with `initialize`. */
export type ClientSession = { readonly id: string; readonly askable: readonly Askable[] };

/** Returns the session; null for requests of 2026-07-28, which has no sessions, and for clients that cannot be asked anything. */
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
 * Starts a session for a client that can be asked something; others need none. Its id contains its content and a hash that
 * binds it to its caller. So each process can read it and none stores it. A caller can only forge its own sessions.
 */
function startSession(capabilities: unknown, owner: string): string | null {
  const askable = ASKABLE.filter((name) => isJsonObject(capabilities) && isAskable(name, capabilities));
  if (askable.length === 0) return null;
  const said = `${randomUUID()}.${askable.join("-")}`;
  return `${said}.${bind(said, owner)}`;
}

/** Reads a session; null if it is invalid or another caller's. */
function readSession(id: string, owner: string): ClientSession | null {
  const [random = "", names = "", bound, ...others] = id.split(".");
  if (others.length > 0 || bound !== bind(`${random}.${names}`, owner)) return null;
  const given = names.split("-");
  return { id, askable: ASKABLE.filter((name) => given.includes(name)) };
}

/** Returns true if the client shows questions as forms to its user: its elicitation has no modes, or has this one. */
export function canAskUser(capabilities: unknown): boolean {
  return isJsonObject(capabilities) && isAskable("elicitation", capabilities);
}

/** Returns the same as `canAskUser`, for a session. */
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
