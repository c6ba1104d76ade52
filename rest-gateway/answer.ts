import type { IncomingMessage, ServerResponse } from "node:http";
import { LightAbort } from "../engine/abort.ts";
import type { Config } from "../engine/config/config.ts";
import { toApiError } from "../engine/errors.ts";
import type { RequestLimit } from "../engine/limits/request-limit.ts";
import type { Logger } from "../engine/log.ts";
import { makeReadConnection } from "./connection.ts";
import { discardRest } from "./discard-rest.ts";
import { refuse } from "./gateway.ts";
import {
  type BaseHeaders,
  type Body,
  clientLeft,
  cutOff,
  type GatewayRequest,
  type GatewayResponse,
  isFlow,
  send,
  sendAndLinger,
  sendFlow,
  toGatewayRequest,
} from "./http.ts";
import { makeAdmission } from "./limits/admission.ts";
import { RequestBodies } from "./request-bodies.ts";
import { makeStages, NO_STAGES } from "./stages.ts";
import { boundUnread } from "./unread.ts";

/** How many of the largest answers may wait for clients to read them. */
const UNREAD_ANSWERS = 8;

export type Answer = (request: IncomingMessage, response: ServerResponse, base?: BaseHeaders) => Promise<void>;

type Serve = (request: GatewayRequest) => Promise<GatewayResponse<Body>>;

type Settings = Pick<
  Config,
  | "serverTiming"
  | "maxBodyBytes"
  | "maxBodyMemory"
  | "maxAnswerBytes"
  | "errorBody"
  | "tableErrorVerbosity"
  | "trustProxy"
>;

/** The one adapter between sockets and handlers of plain values. */
export function answerWith(serve: Serve, config: Settings, log: Logger, limit: RequestLimit | null = null): Answer {
  const { serverTiming, maxAnswerBytes } = config;
  const readConnection = makeReadConnection(config);
  const bodies = new RequestBodies(config);
  const followUnread = boundUnread(UNREAD_ANSWERS * maxAnswerBytes);
  return async (request, response, base) => {
    const id = String(request.headers["x-request-id"]);
    const stages = serverTiming ? makeStages() : NO_STAGES;
    const left = new LightAbort();
    response.on("close", () => {
      if (!response.writableEnded) left.abort(clientLeft());
    });
    const connection = () => readConnection(request);
    const { admit, headers: standing } = makeAdmission(request.url ?? "/", limit, connection);
    const told: Record<string, string> = { "X-Request-Id": id };
    const tell = (headers: Readonly<Record<string, string>>) => void Object.assign(told, headers);
    const asked = toGatewayRequest(request, {
      id,
      stages,
      signal: left,
      connection,
      admit,
      tell,
      whenSent: (callback) => void response.once("close", callback),
      readBody: (bodyLimit) => bodies.read(request, response, bodyLimit),
      holdMemory: (bytes) => bodies.hold(request, bytes),
    });
    const { status, headers: said, body, reason } = await serve(asked);
    const unread = discardRest(request);
    if (serverTiming) told["Server-Timing"] = stages.header();
    const headers: GatewayResponse["headers"] = Object.assign(told, standing(), said);
    if (base?.Vary && said.Vary) told.Vary = `${said.Vary}, ${base.Vary}`;
    try {
      if (isFlow(body)) await sendFlow(response, { status, headers, flow: body }, base);
      else if (unread && !response.shouldKeepAlive)
        sendAndLinger(response, { status, headers, body, reason }, { base, unread });
      else send(response, { status, headers, body, reason }, base);
      followUnread(response);
    } catch (fault) {
      if (left.aborted) return;
      const isBegun = response.headersSent;
      log.error({ request: id, err: fault }, isBegun ? "an answer broke off" : "an answer could not be sent");
      if (isBegun) return cutOff(response);
      for (const name in said) response.removeHeader(name);
      const refusal = refuse(toApiError(fault), asked, config);
      send(response, { ...refusal, headers: { "X-Request-Id": id, ...refusal.headers } }, base);
    }
  };
}
