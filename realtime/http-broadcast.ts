import type { IncomingHttpHeaders } from "node:http";
import type { BodyLimit, BodyLimitOf } from "../engine/caller/body-limit.ts";
import type { Caller, Callers } from "../engine/caller/caller.ts";
import { unauthorized } from "../engine/caller/unauthorized.ts";
import { ApiError } from "../engine/errors.ts";
import { parseExactly } from "../engine/exact-json.ts";
import { scanJson } from "../engine/json/scan.ts";
import { isJsonObject } from "../engine/json-object.ts";
import { runStepwise } from "../engine/stepwise.ts";
import { methodNotAllowed, notFound } from "../engine/wrong-address.ts";
import { readApiKey } from "./api-key.ts";
import type { Authorization } from "./authorization.ts";
import type { Broadcast } from "./broadcast-frame.ts";
import { MOST_VALUES } from "./message-limits.ts";
import { DEEPEST } from "./protocol.ts";
import { keyOf, type Room } from "./rooms.ts";
import type { Speech } from "./speech.ts";

/** What is known of a request here; whoever listens on the socket says the rest. */
export type HttpRequest = {
  readonly method: string;
  readonly path: string;
  readonly rawQuery: string;
  readonly headers: IncomingHttpHeaders;
  /** Refuses a caller whose requests are too many. */
  admit(caller: Caller): void;
  readBody(limit: BodyLimit): Promise<Buffer>;
};

export type HttpResponse = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: null;
};

type Services = {
  readonly callers: () => Callers;
  readonly authorization: Authorization;
  readonly speech: Speech;
  readonly bodyLimitOf: BodyLimitOf;
};

export const API_PATH = "/realtime/v1/api";

const BATCH = `${API_PATH}/broadcast`;
const SINGLE = new RegExp(`^${BATCH}/(?<topic>[^/]+)/events/(?<event>[^/]+)$`);
const METHODS = "OPTIONS, POST";
/** As large as a message is with Supabase. */
export const MOST_BODY_BYTES = 3 * 2 ** 20;
/** Each private room among them costs a question to the database. */
const MOST_MESSAGES = 1_000;
const ACCEPTED: HttpResponse = { status: 202, headers: {}, body: null };

type Sent = { readonly room: Room; readonly broadcast: Broadcast };

/** Broadcasts without a socket. */
export function makeHttpBroadcast({ callers, authorization, speech, bodyLimitOf }: Services) {
  const identify = async (request: HttpRequest): Promise<Caller> => {
    const { headers, rawQuery } = request;
    const { authorization = null } = headers;
    const apiKey = readApiKey(headers, new URLSearchParams(rawQuery));
    // A client that has no token shows its key twice, and a key need not be a token.
    const token = authorization === `Bearer ${apiKey}` ? null : authorization;
    const caller = await callers().identify({ authorization: token, apiKey });
    if (caller.kind === "anonymous") {
      throw unauthorized("AUTH_REQUIRED", "A key or a token is needed: send the header apikey.", "no credential");
    }
    request.admit(caller);
    return caller;
  };

  const maySay = async (caller: Caller, { room }: Sent): Promise<boolean> =>
    !room.isPrivate || authorization.maySay(caller, room.name, "broadcast");

  const sayBatch = async (request: HttpRequest): Promise<HttpResponse> => {
    const caller = await identify(request);
    const messages = readBatch(await readBody(request, bodyLimitOf(caller)));
    const answers = new Map<string, boolean>();
    for (const sent of messages) {
      const room = keyOf(sent.room);
      const isAllowed = answers.get(room) ?? (await maySay(caller, sent));
      answers.set(room, isAllowed);
      if (isAllowed) await speech.say(sent.room, sent.broadcast, null)();
    }
    return ACCEPTED;
  };

  const saySingle = async (request: HttpRequest, topic: string, event: string): Promise<HttpResponse> => {
    const caller = await identify(request);
    const isPrivate = readPrivate(new URLSearchParams(request.rawQuery).get("private"));
    const encoding = encodingOf(request.headers);
    const payload = await request.readBody(bodyLimitOf(caller));
    if (encoding === "json") await checkJson(payload, DEEPEST);
    const sent: Sent = {
      room: { name: decode(topic), isPrivate },
      broadcast: { event: decode(event), encoding, payload },
    };
    if (!(await maySay(caller, sent))) {
      throw new ApiError(
        403,
        "PERMISSION_DENIED",
        "The policies on realtime.messages do not let you write to this topic.",
      );
    }
    await speech.say(sent.room, sent.broadcast, null)();
    return ACCEPTED;
  };

  return async (request: HttpRequest): Promise<HttpResponse> => {
    const single = SINGLE.exec(request.path)?.groups;
    if (!single && request.path !== BATCH) throw notFound();
    if (request.method === "OPTIONS") return { status: 204, headers: { Allow: METHODS }, body: null };
    if (request.method !== "POST") throw methodNotAllowed(request.method, METHODS);
    return single ? saySingle(request, single.topic!, single.event!) : sayBatch(request);
  };
}

/** `{"messages":[{"topic":"room1","event":"hi","payload":{…},"private":false}]}`; all are read before any is sent. */
function readBatch(written: unknown): readonly Sent[] {
  const { messages } = isJsonObject(written) ? written : {};
  if (!Array.isArray(messages)) throw unreadable("The body must be an object with a list of messages.");
  if (messages.length > MOST_MESSAGES) throw unreadable(`At most ${MOST_MESSAGES} messages can be sent at once.`);
  return messages.map((message: unknown) => {
    const { topic, event, payload, private: isPrivate } = isJsonObject(message) ? message : {};
    if (
      typeof topic !== "string" ||
      topic === "" ||
      typeof event !== "string" ||
      event === "" ||
      !isJsonObject(payload)
    ) {
      throw unreadable("Each message needs a topic, an event and a payload, which is an object.");
    }
    const broadcast: Broadcast = { event, encoding: "json", payload: Buffer.from(JSON.stringify(payload)) };
    return { room: { name: topic, isPrivate: readPrivate(isPrivate) }, broadcast };
  });
}

/** What cannot be read is refused, since it could be meant for few and would be told to all. */
function readPrivate(written: unknown): boolean {
  const said = typeof written === "string" ? written.toLowerCase() : (written ?? false);
  if (said === true || said === "true") return true;
  if (said === false || said === "false") return false;
  throw unreadable("Whether a message is private is said by true or false.");
}

function encodingOf({ "content-type": type = "application/json" }: IncomingHttpHeaders): Broadcast["encoding"] {
  const name = type.split(";", 1)[0]!.trim().toLowerCase();
  if (name === "application/json") return "json";
  if (name === "application/octet-stream") return "raw";
  throw new ApiError(415, "UNSUPPORTED_MEDIA_TYPE", `A body of the type "${name}" cannot be sent on.`, {
    hint: "Send application/json or application/octet-stream.",
  });
}

async function readBody(request: HttpRequest, limit: BodyLimit): Promise<unknown> {
  const body = await request.readBody(limit);
  // The messages lie within an object.
  const values = await checkJson(body, DEEPEST + 1);
  if (values > MOST_VALUES) throw unreadable(`The messages have at most ${MOST_VALUES} values.`);
  return parseExactly(body.toString("utf8"));
}

/** How many values it has. */
async function checkJson(body: Buffer, mostLevels: number): Promise<number> {
  const scan = await runStepwise(scanJson(body, null, mostLevels));
  if (scan.kind === "invalid") throw unreadable("The body is not JSON.");
  if (scan.kind === "too deep") throw unreadable(`A message has at most ${DEEPEST} levels.`);
  return scan.values;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw unreadable("The address is not percent-encoded.");
  }
}

function unreadable(message: string): ApiError {
  return new ApiError(422, "VALIDATION_ERROR", message);
}
