import type { IncomingMessage, ServerResponse } from "node:http";
import type { Logger } from "../engine/log.ts";
import { pathOf } from "./http.ts";

/** Told of each request when it is over. */
export type CountRequest = (method: string, path: string, status: number, milliseconds: number) => void;

type Followed = {
  readonly id: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Null: nobody counts. */
  readonly count: CountRequest | null;
};

/** One line per request, when it is over. The query is left out: filters and keys are nobody's business. */
export function logRequest(log: Logger, { id, request, response, count }: Followed): void {
  if (!count && !log.isLevelEnabled("error")) return;
  const startedAt = performance.now();
  const { method = "GET", url = "/" } = request;
  response.on("close", () => {
    // Without a head the client was told nothing: that is nginx's status for one that left.
    const status = response.headersSent ? response.statusCode : 499;
    const took = performance.now() - startedAt;
    const path = pathOf(url);
    count?.(method, path, status, took);
    const level = status >= 500 ? "error" : "info";
    if (!log.isLevelEnabled(level)) return;
    const milliseconds = Math.round(took * 10) / 10;
    const aborted = !response.writableFinished;
    log[level]({ request: id, method, path, status, milliseconds, ...(aborted && { aborted }) }, "request");
  });
}
