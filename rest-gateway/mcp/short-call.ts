import type { IncomingHttpHeaders } from "node:http";
import { isJsonObject, type JsonObject } from "#runtime/json";
import type { ToolResult } from "./call-tool.ts";
import { STATELESS_VERSION } from "./client-session.ts";

/** A call that does not need the SDK: one message, a known version, no progress. */
type ShortCall = {
  readonly id: string | number;
  readonly name: string;
  readonly given: JsonObject;
  /** True for 2026-07-28, whose results contain more. */
  readonly isStateless: boolean;
  /** The capabilities that this message declares; in 2025-11-25, the session declares them. */
  readonly capabilities: unknown;
};

const SESSION_VERSIONS: readonly unknown[] = ["2025-11-25", "2025-06-18", "2025-03-26"];
const META = "io.modelcontextprotocol/";
const CLIENT_CAPABILITIES = `${META}clientCapabilities`;
const META_MEMBERS: readonly string[] = ["protocolVersion", "clientInfo", "clientCapabilities"].map(
  (name) => META + name,
);

/**
 * Reads a short call; null for all other messages: the SDK answers those, and explains errors in them. It takes as long for a
 * call as the table interface for its query.
 */
export function readShortCall(message: unknown, headers: IncomingHttpHeaders): ShortCall | null {
  if (!isJsonObject(message) || message.method !== "tools/call" || message.jsonrpc !== "2.0") return null;
  const { id, params } = message;
  if ((typeof id !== "string" && !Number.isSafeInteger(id)) || !isJsonObject(params)) return null;
  const { name, arguments: given = {}, _meta: meta } = params;
  if (typeof name !== "string" || !isJsonObject(given) || !hasOnly(params, ["name", "arguments", "_meta"])) return null;
  if (!isAccepted(headers)) return null;
  const call = { id: id as string | number, name, given };
  const version = headers["mcp-protocol-version"];
  if (version === STATELESS_VERSION) {
    if (!isStatelessCall(meta, name, headers)) return null;
    return { ...call, isStateless: true, capabilities: meta[CLIENT_CAPABILITIES] };
  }
  if (!SESSION_VERSIONS.includes(version) || meta !== undefined) return null;
  return { ...call, isStateless: false, capabilities: null };
}

function isAccepted({ accept = "", "content-type": type }: IncomingHttpHeaders): boolean {
  return type === "application/json" && accept.includes("application/json") && accept.includes("text/event-stream");
}

/** Returns true if the envelope of the message and the headers agree. */
function isStatelessCall(meta: unknown, name: string, headers: IncomingHttpHeaders): meta is JsonObject {
  if (!isJsonObject(meta) || !hasOnly(meta, META_MEMBERS)) return false;
  const client = meta[`${META}clientInfo`];
  return (
    meta[`${META}protocolVersion`] === STATELESS_VERSION &&
    isJsonObject(client) &&
    typeof client.name === "string" &&
    typeof client.version === "string" &&
    isJsonObject(meta[CLIENT_CAPABILITIES]) &&
    headers["mcp-method"] === "tools/call" &&
    headers["mcp-name"] === name
  );
}

function hasOnly(object: JsonObject, names: readonly string[]): boolean {
  return Object.keys(object).every((name) => names.includes(name));
}

/** Returns the response as text, which contains the rows as Postgres printed them. */
export function shortResponse(
  { id, isStateless }: ShortCall,
  { isError, text, structured }: ToolResult,
  serverInfo: string,
): string {
  const content = `"content":[{"type":"text","text":${JSON.stringify(text)}}]`;
  const outcome = isError ? ',"isError":true' : structured === null ? "" : `,"structuredContent":${structured}`;
  const envelope = isStateless ? `,"resultType":"complete","_meta":{"${META}serverInfo":${serverInfo}}` : "";
  return `{"result":{${content}${outcome}${envelope}},"jsonrpc":"2.0","id":${JSON.stringify(id)}}`;
}
