import { CredentialError, hasExpired } from "#accounts/identity";
import { readApiKey, toChannelReason, toHttpError } from "#http";
import type { RequestHeaders } from "#http/request-info";
import { isJsonObject } from "#runtime/json";

const PUSH_KIND = 3;
const BROADCAST_KIND = 4;
const PAYLOAD_ENCODINGS = ["raw", "json"] as const;
const PUSH_HEADER_BYTES = 7;
/** The limit of names, since lengths are one byte each. */
const MAX_NAME_BYTES = 255;

/** The versions of Phoenix's protocol (https://hexdocs.pm/phoenix/writing_a_channels_client.html). The broadcast frames are Supabase's own. */
export type ProtocolVersion = "1.0.0" | "2.0.0";

/** A message from a client. `ref` and `joinRef` are echoed unchanged. */
export type ClientMessage = {
  readonly joinRef: string | null;
  readonly ref: string | null;
  readonly topic: string;
  readonly event: string;
  readonly payload: unknown;
};

export type MessageEnvelope = Omit<ClientMessage, "payload">;

/** Parses the version; the first version by default, null if it is not supported. */
export function parseProtocolVersion(text: string | null): ProtocolVersion | null {
  if (text === null || /^1\./.test(text)) return "1.0.0";
  return /^2\./.test(text) ? "2.0.0" : null;
}

/** Parses a message; null if it is invalid, and then ignored. */
export function parseClientMessage(text: string, version: ProtocolVersion): ClientMessage | null {
  const value = parseJson(text);
  if (version === "2.0.0") {
    if (!Array.isArray(value) || value.length !== 5) return null;
    const [joinRef, ref, topic, event, payload] = value;
    return toClientMessage({ join_ref: joinRef, ref, topic, event, payload });
  }
  return isJsonObject(value) ? toClientMessage(value) : null;
}

// A JSON scalar, at most as long as a topic whose characters are all escaped.
const SCALAR = String.raw`(?:"(?:[^"\\]|\\.){0,6000}"|[\w.+-]{1,100})`;
const MEMBER = String.raw`\s*"(?:topic|event|ref|join_ref)"\s*:\s*${SCALAR}\s*`;
const BEFORE_PAYLOAD = {
  "1.0.0": new RegExp(String.raw`^\s*\{(?:${MEMBER},)*\s*"payload"\s*:`),
  "2.0.0": new RegExp(String.raw`^\s*\[(?:\s*${SCALAR}\s*,){4}`),
};
const AFTER_PAYLOAD = new RegExp(String.raw`^\s*(?:,${MEMBER})*$`);

/** Returns the unchanged text of a valid message's payload; null if it cannot be located with certainty. */
export function sliceExactPayload(text: string, version: ProtocolVersion): string | null {
  const start = BEFORE_PAYLOAD[version].exec(text)?.[0].length;
  if (start === undefined) return null;
  const last = text.lastIndexOf(version === "2.0.0" ? "]" : "}");
  const end = text.lastIndexOf("}", last - 1) + 1;
  const payload = text.slice(start, end);
  return AFTER_PAYLOAD.test(text.slice(end, last)) && isJson(payload) ? payload : null;
}

/** The number of bytes at each end of a long message that are read for its envelope. */
const PEEKED_BYTES = 16 * 1024;

/** Returns the envelope of a long message, whose payload is not parsed; null if it cannot be located with certainty. */
export function peekEnvelope(data: Buffer, version: ProtocolVersion): MessageEnvelope | null {
  const before = BEFORE_PAYLOAD[version].exec(data.toString("utf8", 0, PEEKED_BYTES))?.[0];
  if (before === undefined) return null;
  const behind = textAfterPayload(data.toString("utf8", data.length - PEEKED_BYTES), version);
  return behind === null ? null : parseClientMessage(`${before}null${behind}`, version);
}

/** Returns the text after the payload, such as `,"ref":"1"}`; null if it cannot be located with certainty. */
function textAfterPayload(text: string, version: ProtocolVersion): string | null {
  const last = text.lastIndexOf(version === "2.0.0" ? "]" : "}");
  const end = text.lastIndexOf("}", last - 1) + 1;
  return end > 0 && AFTER_PAYLOAD.test(text.slice(end, last)) ? text.slice(end) : null;
}

/** Encodes a message. `payload` is JSON already: it is encoded once for many receivers. */
export function encodeMessage(
  version: ProtocolVersion,
  { joinRef, ref, topic, event }: MessageEnvelope,
  payload: string,
): string {
  const topicText = JSON.stringify(topic);
  const eventText = JSON.stringify(event);
  if (version === "2.0.0") return `[${encodeRef(joinRef)},${encodeRef(ref)},${topicText},${eventText},${payload}]`;
  const join = joinRef === null ? "" : `,"join_ref":${encodeRef(joinRef)}`;
  return `{"topic":${topicText},"event":${eventText},"payload":${payload},"ref":${encodeRef(ref)}${join}}`;
}

/** The maximum number of levels in a message. */
export const MAX_MESSAGE_DEPTH = 1_000;

/** True for a deeper value. It can be parsed, but stringifying it would exhaust the stack. */
export function isDeeperThan(levels: number, value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((member) => isDeeperThan(levels - 1, member));
}

function toClientMessage({
  join_ref: joinRef,
  ref,
  topic,
  event,
  payload,
}: Readonly<Record<string, unknown>>): ClientMessage | null {
  if (typeof topic !== "string" || typeof event !== "string") return null;
  return { joinRef: toRef(joinRef), ref: toRef(ref), topic, event, payload };
}

function toRef(value: unknown): string | null {
  return typeof value === "string" || typeof value === "number" ? String(value) : null;
}

function encodeRef(ref: string | null): string {
  return ref === null ? "null" : JSON.stringify(ref);
}

/** Returns a string unchanged, anything else as JSON: an object with its own toString may not be convertible. */
export function stringifyValue(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

export function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Reads the API key from the headers or the query; browsers cannot send headers with a socket. */
export function readChannelApiKey(headers: RequestHeaders, query: URLSearchParams): string | null {
  return readApiKey(headers, ["apikey", "x-api-key"], () => query.get("apikey"));
}

/**
 * A broadcast. The bytes of the payload are passed on unchanged; `whole` is a message that has more or less than an event and a payload:
 * some clients put their data beside the event.
 */
export type BroadcastMessage = {
  readonly event: string;
  readonly encoding: "json" | "raw" | "whole";
  readonly payload: Buffer;
};

export type BroadcastPush = MessageEnvelope & { readonly broadcast: BroadcastMessage };

/**
 * Parses `03 01 01 0e 02 00 01
 * "6" "7" "realtime:room1" "hi" {"a":1}`; null for anything else. The caller validates a JSON payload: it is inserted into messages
 * unchanged, where half a value could end the message and start another.
 */
export function parseBroadcastPush(frame: Buffer): BroadcastPush | null {
  if (frame.length < PUSH_HEADER_BYTES || frame[0] !== PUSH_KIND) return null;
  const encoding = PAYLOAD_ENCODINGS[frame[6]!];
  let at = PUSH_HEADER_BYTES;
  const [joinRef, ref, topic, event] = [1, 2, 3, 4].map((place) => {
    const length = frame[place]!;
    at += length;
    return frame.toString("utf8", at - length, at);
  }) as [string, string, string, string];
  at += frame[5]!;
  if (at > frame.length || !encoding) return null;
  const broadcast = { event, encoding, payload: frame.subarray(at) };
  return { joinRef: joinRef || null, ref: ref || null, topic, event: "broadcast", broadcast };
}

/**
 * Encodes `04 0e 02 00 01
 * "realtime:room1" "hi" {"a":1}`; null if the format cannot represent the message.
 */
export function encodeBroadcastFrame(topic: string, { event, encoding, payload }: BroadcastMessage): Buffer | null {
  if (encoding === "whole") return null;
  const names = [Buffer.from(topic), Buffer.from(event)] as const;
  if (names.some(({ length }) => length > MAX_NAME_BYTES)) return null;
  const header = Buffer.from([
    BROADCAST_KIND,
    names[0].length,
    names[1].length,
    0,
    PAYLOAD_ENCODINGS.indexOf(encoding),
  ]);
  return Buffer.concat([header, ...names, payload]);
}

/** Encodes the payload as text, which cannot contain raw bytes. */
export function encodeBroadcastPayload({ event, encoding, payload }: BroadcastMessage): string {
  if (encoding === "whole") return payload.toString("utf8");
  return `{"type":"broadcast","event":${JSON.stringify(event)},"payload":${payload.toString("utf8")}}`;
}

/** The payload of a join; missing and invalid values have their defaults. */
export type JoinRequest = {
  readonly token: string | null;
  readonly isPrivate: boolean;
  readonly broadcast: {
    readonly ack: boolean;
    readonly self: boolean;
    readonly replicationReady: boolean;
    readonly replay: ReplayRequest | null;
  };
  readonly presence: { readonly key: string | null; readonly enabled: boolean };
  readonly bindings: readonly BindingRequest[];
  /** The milliseconds that the reply may wait for table changes; null if it does not wait. */
  readonly waitMs: number | null;
  /** The position of the last change that the client received: our extension of the protocol. */
  readonly resume: string | null;
};

/** A request such as `{"event":"*","schema":"public","table":"items","filter":"id=eq.1","select":["id"]}`, unchanged, as it is echoed. */
export type BindingRequest = Readonly<Record<string, unknown>>;

/** The newest messages since a time, in milliseconds since 1970. */
export type ReplayRequest = { readonly since: number; readonly limit: number };

const MAX_REPLAYED_MESSAGES = 25;
/** The last time that JavaScript can represent. */
const MAX_TIME = 8.64e15;
const MAX_WAIT_MS = 60_000;
const DEFAULT_WAIT_MS = 15_000;

/** Parses a join. Throws if it requests a replay that is not possible. */
export function parseJoinRequest(payload: unknown): JoinRequest {
  const { config, access_token: token, user_token: olderName } = isJsonObject(payload) ? payload : {};
  const { private: isPrivate, postgres_changes: bindings, resume, ...rest } = isJsonObject(config) ? config : {};
  const broadcast = isJsonObject(rest.broadcast) ? rest.broadcast : {};
  const presence = isJsonObject(rest.presence) ? rest.presence : {};
  const options = isJsonObject(rest.postgres_changes_options) ? rest.postgres_changes_options : {};
  return {
    token: parseToken(token ?? olderName),
    isPrivate: parseBoolean(isPrivate),
    broadcast: {
      ack: parseBoolean(broadcast.ack),
      self: parseBoolean(broadcast.self),
      replicationReady: parseBoolean(broadcast.replication_ready),
      replay: parseReplay(broadcast.replay, parseBoolean(isPrivate)),
    },
    presence: {
      key: parsePresenceKey(presence.key),
      enabled: parseBoolean(presence.enabled),
    },
    bindings: Array.isArray(bindings) ? bindings.filter(isJsonObject) : [],
    waitMs: parseBoolean(options.wait) ? parseWait(options.timeout) : null,
    resume: typeof resume === "string" ? resume : null,
  };
}

/** Parses a token. Some clients send an API key of the new format in its place; the socket has that already. */
export function parseToken(value: unknown): string | null {
  return typeof value === "string" && !value.startsWith("sb_") ? value : null;
}

function parseReplay(value: unknown, isPrivate: boolean): ReplayRequest | null {
  if (value === undefined || value === null) return null;
  if (!isPrivate) throw new ChannelError("UnableToReplayMessages", "Replay is not allowed for public channels");
  const { since, limit } = isJsonObject(value) ? value : {};
  const count = limit ?? MAX_REPLAYED_MESSAGES;
  if (!isWholeNumber(since) || !isWholeNumber(count))
    throw new ChannelError("UnableToReplayMessages", "Replay params are not valid");
  return { since, limit: Math.min(count, MAX_REPLAYED_MESSAGES) };
}

function isWholeNumber(value: unknown): value is number {
  return typeof value === "number" && Number.isInteger(value) && value >= 0 && value <= MAX_TIME;
}

function parsePresenceKey(value: unknown): string | null {
  const isScalar = typeof value === "string" || typeof value === "number" || typeof value === "boolean";
  return isScalar && value !== "" ? String(value) : null;
}

function parseWait(value: unknown): number {
  return typeof value === "number" && value > 0 ? Math.min(value, MAX_WAIT_MS) : DEFAULT_WAIT_MS;
}

function parseBoolean(value: unknown): boolean {
  return value === true || (typeof value === "string" && value.toLowerCase() === "true");
}

/**
 * The reason why a join is rejected or a channel is closed, in Supabase's words: `Code: text` in a reply (some have no code), the text
 * alone when a channel closes.
 */
export class ChannelError extends Error {
  readonly text: string;

  constructor(code: string | null, text: string) {
    super(code === null ? text : `${code}: ${text}`);
    this.name = "Refusal";
    this.text = text;
  }
}

/** Returns the reason in a reply, for any error. */
export function errorReason(error: unknown): string {
  return error instanceof ChannelError ? error.message : toChannelReason(toHttpError(error)).reason;
}

/** Converts an error to the reason why the token is rejected. */
export function toTokenError(error: unknown, token: string): unknown {
  if (!(error instanceof CredentialError)) return error;
  if (error.reason === "tokenMalformed") return malformedToken();
  if (error.reason === "signatureInvalid" || error.reason === "keyUnknown") {
    return new ChannelError("JwtSignatureError", "Failed to validate JWT signature");
  }
  const expiresAt = error.code === "TOKEN_EXPIRED" ? readExpiry(token) : null;
  if (expiresAt !== null && hasExpired(expiresAt)) return expiredToken(expiresAt);
  return new ChannelError("InvalidJWTToken", error.message);
}

export function malformedToken(): ChannelError {
  return new ChannelError("MalformedJWT", "The token provided is not a valid JWT");
}

export function expiredToken(expiresAt: number): ChannelError {
  return new ChannelError(
    "InvalidJWTToken",
    `Token has expired ${Math.floor(Date.now() / 1000 - expiresAt)} seconds ago`,
  );
}

/** Returns the expiry of a token whose signature is valid. */
function readExpiry(token: string): number | null {
  const claims = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString("utf8"));
  return typeof claims?.exp === "number" ? claims.exp : null;
}
