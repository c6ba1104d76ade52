import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Logger } from "../engine/log.ts";

/** An id that is safe in a header, in a log line and in SQL. */
const SANE_ID = /^[\w.:+/=@-]{1,128}$/;

/** Takes the request's id from its sender or makes one; the answer, the log and SQL show the same. */
export function identifyRequest(request: IncomingMessage): string {
  const given = request.headers["x-request-id"];
  const id = typeof given === "string" && SANE_ID.test(given) ? given : randomUUID();
  request.headers["x-request-id"] = id;
  return id;
}

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
    const path = url.split("?", 1)[0]!;
    count?.(method, path, status, took);
    const level = status >= 500 ? "error" : "info";
    if (!log.isLevelEnabled(level)) return;
    const milliseconds = Math.round(took * 10) / 10;
    const aborted = !response.writableFinished;
    log[level]({ request: id, method, path, status, milliseconds, ...(aborted && { aborted }) }, "request");
  });
}
