import { randomUUID } from "node:crypto";
import type { NextFunction, Request, Response } from "express";
import type { Logger } from "../engine/log.ts";

/** An id that is safe in a header, in a log line and in SQL. */
const SANE_ID = /^[\w.:+/=@-]{1,128}$/;

/** Takes the request's id from its sender or makes one; the answer, the log and SQL show the same. */
export function identifyRequest() {
  return (request: Request, response: Response, next: NextFunction) => {
    const given = request.headers["x-request-id"];
    const id = typeof given === "string" && SANE_ID.test(given) ? given : randomUUID();
    request.headers["x-request-id"] = id;
    response.locals.requestId = id;
    response.setHeader("X-Request-Id", id);
    next();
  };
}

/** One line per request, when it is over. The query is left out: filters and keys are nobody's business. */
export function logRequest(log: Logger) {
  return (request: Request, response: Response, next: NextFunction) => {
    const startedAt = performance.now();
    const { method, path } = request;
    response.once("close", () => {
      const level = response.statusCode >= 500 ? "error" : "info";
      log[level](
        {
          request: response.locals.requestId,
          method,
          path,
          status: response.statusCode,
          milliseconds: Math.round((performance.now() - startedAt) * 10) / 10,
          ...(!response.writableFinished && { aborted: true }),
        },
        "request",
      );
    });
    next();
  };
}
