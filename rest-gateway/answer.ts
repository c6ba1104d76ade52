import type { IncomingMessage, ServerResponse } from "node:http";
import type { Config } from "../engine/config/config.ts";
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
  { serverTiming, maxBodyBytes }: Pick<Config, "serverTiming" | "maxBodyBytes">,
): Answer {
  return async (request, response, base = {}) => {
    const id = String(request.headers["x-request-id"]);
    const stages = serverTiming ? makeStages() : NO_STAGES;
    const left = new AbortController();
    response.once("close", () => {
      if (!response.writableEnded) left.abort();
    });
    const answer = await serve(toGatewayRequest(request, { id, stages, signal: left.signal, maxBodyBytes }));
    const timing = serverTiming ? { "Server-Timing": stages.header() } : {};
    send(response, { ...answer, headers: { ...base, ...timing, ...answer.headers } });
  };
}
