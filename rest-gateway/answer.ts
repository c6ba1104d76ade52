import type { IncomingMessage, ServerResponse } from "node:http";
import type { Config } from "../engine/config/config.ts";
import { toApiError } from "../engine/errors.ts";
import type { Logger } from "../engine/log.ts";
import { refuse } from "./gateway.ts";
import type { GatewayRequest, GatewayResponse } from "./http.ts";
import { send, toGatewayRequest } from "./http.ts";
import { makeStages, NO_STAGES } from "./stages.ts";

export type Answer = (
  request: IncomingMessage,
  response: ServerResponse,
  base?: Readonly<Record<string, string>>,
) => Promise<void>;

type Serve = (request: GatewayRequest) => Promise<GatewayResponse>;

/** The one adapter between sockets and handlers of plain values. */
export function answerWith(
  serve: Serve,
  { serverTiming, maxBodyBytes, errorBody }: Pick<Config, "serverTiming" | "maxBodyBytes" | "errorBody">,
  log: Logger,
): Answer {
  return async (request, response, base = {}) => {
    const id = String(request.headers["x-request-id"]);
    const stages = serverTiming ? makeStages() : NO_STAGES;
    const left = new AbortController();
    response.once("close", () => {
      if (!response.writableEnded) left.abort();
    });
    const asked = toGatewayRequest(request, { id, stages, signal: left.signal, maxBodyBytes });
    const answer = await serve(asked);
    const timing = serverTiming ? { "Server-Timing": stages.header() } : {};
    try {
      send(response, { ...answer, headers: { ...base, ...timing, ...answer.headers } });
    } catch (fault) {
      log.error({ request: id, err: fault }, "an answer could not be sent");
      if (response.headersSent) throw fault;
      for (const name in answer.headers) response.removeHeader(name);
      const refusal = refuse(toApiError(fault), asked, errorBody);
      send(response, { ...refusal, headers: { ...base, ...refusal.headers } });
    }
  };
}
