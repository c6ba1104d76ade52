import cors from "cors";
import express, { type Express, type NextFunction, type Request, type Response } from "express";
import helmet from "helmet";
import type { Config } from "../engine/config/config.ts";
import { toApiError } from "../engine/errors.ts";
import type { Logger } from "../engine/log.ts";
import { makeGateway, type Routes, refuse } from "./gateway.ts";
import { send, toGatewayRequest } from "./http.ts";
import { identifyRequest, logRequest } from "./request-log.ts";
import { makeStages, NO_STAGES } from "./stages.ts";

type AppOptions = { readonly config: Config; readonly routes: Routes; readonly log: Logger };

/** The middleware in the order in which a request meets it. */
export function makeApp({ config, routes, log }: AppOptions): Express {
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  app.set("query parser", "simple");
  if (config.trustProxy !== null) app.set("trust proxy", config.trustProxy);

  app.use(identifyRequest());
  app.use(logRequest(log));
  app.use(securityHeaders());
  app.use(crossOrigin(config));

  const gateway = makeGateway({ routes, errorBody: config.errorBody, log });
  app.use(async (request: Request, response: Response) => {
    const stages = config.serverTiming ? makeStages() : NO_STAGES;
    const occasion = { id: response.locals.requestId as string, stages, maxBodyBytes: config.maxBodyBytes };
    const answer = await gateway(toGatewayRequest(request, occasion));
    if (config.serverTiming) response.setHeader("Server-Timing", stages.header());
    send(response, answer);
  });

  // What goes wrong before the gateway is reached; Express knows an error handler by its four arguments.
  app.use((thrown: unknown, request: Request, response: Response, _next: NextFunction) => {
    const error = toApiError(thrown);
    const { requestId } = response.locals as { requestId: string };
    log.error({ request: requestId, err: error.cause }, error.message);
    send(response, refuse(error, { id: requestId, path: request.path }, config.errorBody));
  });
  return app;
}

/** For answers that are data; a face that serves pages sets a policy of its own. */
function securityHeaders() {
  return helmet({
    contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
    crossOriginResourcePolicy: { policy: "cross-origin" },
  });
}

const EXPOSED_HEADERS = [
  "Content-Encoding",
  "Content-Location",
  "Content-Range",
  "ETag",
  "Link",
  "Location",
  "Preference-Applied",
  "Retry-After",
  "Server-Timing",
  "X-Api-Sunset",
  "X-Api-Warn",
  "X-RateLimit-Limit",
  "X-RateLimit-Remaining",
  "X-RateLimit-Reset",
  "X-Request-Id",
];

function crossOrigin({ corsOrigins }: Config) {
  const named = corsOrigins !== "*";
  const share = cors({
    origin: named ? [...corsOrigins] : "*",
    // A browser sends cookies along only to origins that the deployment has named.
    credentials: named,
    methods: ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"],
    exposedHeaders: EXPOSED_HEADERS,
    maxAge: 86_400,
  });
  return (request: Request, response: Response, next: NextFunction) => {
    // An OPTIONS request that asks for no method is no preflight, but a question about the resource.
    if (request.method === "OPTIONS" && !request.headers["access-control-request-method"]) {
      next();
      return;
    }
    share(request, response, next);
  };
}
