import type { IncomingHttpHeaders } from "node:http";
import { API_RESOURCE, type Authenticator, type Caller, CredentialError, requireWriteAccess } from "#accounts/identity";
import { type BodyLimit, type FindBodyLimit, HttpError, methodNotAllowed, notFound } from "#http";
import { runStepwise } from "#runtime/concurrency";
import { isJsonObject, parseJsonExactly, scanJson } from "#runtime/json";
import type { TopicAuthorization } from "./authorization.ts";
import { type Broadcaster, type ChannelTopic, topicKey } from "./broadcast.ts";
import { MAX_MESSAGE_VALUES } from "./protocol/client-limits.ts";
import { type BroadcastMessage, MAX_MESSAGE_DEPTH, readChannelApiKey } from "./protocol/messages.ts";

/** The request, as the HTTP server passes it on. */
export type BroadcastRequest = {
  readonly method: string;
  readonly path: string;
  readonly rawQuery: string;
  readonly headers: IncomingHttpHeaders;
  /** Rejects a caller who exceeds the rate limit. */
  admit(caller: Caller): void;
  readBody(limit: BodyLimit): Promise<Buffer>;
};

export type BroadcastResponse = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: null;
};

type HttpBroadcastDependencies = {
  readonly authenticator: () => Authenticator;
  readonly authorization: TopicAuthorization;
  readonly broadcaster: Broadcaster;
  readonly bodyLimitOf: FindBodyLimit;
};

export const BROADCAST_API_PATH = "/realtime/v1/api";

const BATCH_PATH = `${BROADCAST_API_PATH}/broadcast`;
const SINGLE_PATH = new RegExp(`^${BATCH_PATH}/(?<topic>[^/]+)/events/(?<event>[^/]+)$`);
const ALLOWED_METHODS = "OPTIONS, POST";
/** The limit of Supabase. */
export const MAX_BODY_BYTES = 3 * 2 ** 20;
/** The limit of messages, since each private topic among them costs a query. */
const MAX_MESSAGES = 1_000;
const ACCEPTED: BroadcastResponse = { status: 202, headers: {}, body: null };

type AddressedBroadcast = { readonly channelTopic: ChannelTopic; readonly broadcast: BroadcastMessage };

export function makeHttpBroadcast(dependencies: HttpBroadcastDependencies) {
  return async (request: BroadcastRequest): Promise<BroadcastResponse> => {
    const single = SINGLE_PATH.exec(request.path)?.groups;
    if (!single && request.path !== BATCH_PATH) throw notFound();
    if (request.method === "OPTIONS") return { status: 204, headers: { Allow: ALLOWED_METHODS }, body: null };
    if (request.method !== "POST") throw methodNotAllowed(request.method, ALLOWED_METHODS);
    const caller = await authenticate(request, dependencies);
    if (single) await sendSingle(request, caller, single as SingleTarget, dependencies);
    else await sendBatch(request, caller, dependencies);
    return ACCEPTED;
  };
}

type SingleTarget = { readonly topic: string; readonly event: string };

async function authenticate(request: BroadcastRequest, { authenticator }: HttpBroadcastDependencies): Promise<Caller> {
  const { headers, rawQuery } = request;
  const { authorization = null } = headers;
  const apiKey = readChannelApiKey(headers, new URLSearchParams(rawQuery));
  // A client without a token sends its key twice, and a key need not be a token.
  const token = authorization === `Bearer ${apiKey}` ? null : authorization;
  const caller = await authenticator().authenticate({ authorization: token, apiKey, resource: API_RESOURCE });
  if (caller.kind === "anonymous") {
    throw new CredentialError(
      "credentialMissing",
      "An API key or a token is required: send the apikey header.",
      "no credential",
    );
  }
  request.admit(caller);
  requireWriteAccess(caller);
  return caller;
}

/** Sends a batch, after all its topics were checked. Messages to topics that the caller may not write to are left out. */
async function sendBatch(
  request: BroadcastRequest,
  caller: Caller,
  dependencies: HttpBroadcastDependencies,
): Promise<void> {
  const { authorization, broadcaster, bodyLimitOf } = dependencies;
  const messages = parseBatch(await readJsonBody(request, bodyLimitOf(caller)));
  const permissions = new Map<string, boolean>();
  for (const { channelTopic } of messages) {
    const key = topicKey(channelTopic);
    if (!permissions.has(key)) permissions.set(key, await authorization.mayWrite(caller, channelTopic, "broadcast"));
  }
  for (const { channelTopic, broadcast } of messages) {
    if (permissions.get(topicKey(channelTopic))) await broadcaster.send(channelTopic, broadcast, null)();
  }
}

async function sendSingle(
  request: BroadcastRequest,
  caller: Caller,
  { topic, event }: SingleTarget,
  dependencies: HttpBroadcastDependencies,
): Promise<void> {
  const { authorization, broadcaster, bodyLimitOf } = dependencies;
  const isPrivate = parsePrivate(new URLSearchParams(request.rawQuery).get("private"));
  const encoding = payloadEncoding(request.headers);
  const payload = await request.readBody(bodyLimitOf(caller));
  if (encoding === "json") await checkJson(payload, MAX_MESSAGE_DEPTH);
  const channelTopic = { name: decodePathSegment(topic), isPrivate };
  const broadcast = { event: decodePathSegment(event), encoding, payload };
  if (!(await authorization.mayWrite(caller, channelTopic, "broadcast"))) {
    throw new HttpError(
      403,
      "PERMISSION_DENIED",
      "The policies on realtime.messages do not allow you to write to this topic.",
    );
  }
  await broadcaster.send(channelTopic, broadcast, null)();
}

/** Parses `{"messages":[{"topic":"room1","event":"hi","payload":{…},"private":false}]}`; all are validated before any is sent. */
function parseBatch(body: unknown): readonly AddressedBroadcast[] {
  const { messages } = isJsonObject(body) ? body : {};
  if (!Array.isArray(messages)) throw invalidBroadcast("The body must be an object with an array of messages.");
  if (messages.length > MAX_MESSAGES) throw invalidBroadcast(`At most ${MAX_MESSAGES} messages can be sent at once.`);
  return messages.map((message: unknown) => {
    const { topic, event, payload, private: isPrivate } = isJsonObject(message) ? message : {};
    if (
      typeof topic !== "string" ||
      topic === "" ||
      typeof event !== "string" ||
      event === "" ||
      !isJsonObject(payload)
    ) {
      throw invalidBroadcast("Each message needs a topic, an event and a payload that is an object.");
    }
    const broadcast: BroadcastMessage = { event, encoding: "json", payload: Buffer.from(JSON.stringify(payload)) };
    return { channelTopic: { name: topic, isPrivate: parsePrivate(isPrivate) }, broadcast };
  });
}

/** Parses `private`. An invalid value is rejected: treating it as false could send a private message to everybody. */
function parsePrivate(input: unknown): boolean {
  const value = typeof input === "string" ? input.toLowerCase() : (input ?? false);
  if (value === true || value === "true") return true;
  if (value === false || value === "false") return false;
  throw invalidBroadcast("private must be true or false.");
}

function payloadEncoding({
  "content-type": type = "application/json",
}: IncomingHttpHeaders): BroadcastMessage["encoding"] {
  const name = type.split(";", 1)[0]!.trim().toLowerCase();
  if (name === "application/json") return "json";
  if (name === "application/octet-stream") return "raw";
  throw new HttpError(415, "UNSUPPORTED_MEDIA_TYPE", `A body of the type "${name}" is not supported.`, {
    hint: "Send application/json or application/octet-stream.",
  });
}

async function readJsonBody(request: BroadcastRequest, limit: BodyLimit): Promise<unknown> {
  const body = await request.readBody(limit);
  // The messages are inside an object.
  const values = await checkJson(body, MAX_MESSAGE_DEPTH + 1);
  if (values > MAX_MESSAGE_VALUES)
    throw invalidBroadcast(`The messages may have at most ${MAX_MESSAGE_VALUES} values.`);
  return parseJsonExactly(body.toString("utf8"));
}

/** Validates JSON. Returns the number of values. */
async function checkJson(body: Buffer, maxDepth: number): Promise<number> {
  const scan = await runStepwise(scanJson(body, null, maxDepth));
  if (scan.kind === "invalid") throw invalidBroadcast("The body is not JSON.");
  if (scan.kind === "too deep") throw invalidBroadcast(`A message may have at most ${MAX_MESSAGE_DEPTH} levels.`);
  return scan.values;
}

function decodePathSegment(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw invalidBroadcast("The path is not valid percent-encoding.");
  }
}

function invalidBroadcast(message: string): HttpError {
  return new HttpError(422, "VALIDATION_ERROR", message);
}
