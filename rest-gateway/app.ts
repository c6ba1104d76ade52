import express, { type Express, type NextFunction, type Request, type Response } from "express";
import type { Config } from "../engine/config/config.ts";
import type { Answer } from "./answer.ts";

type AppOptions = { readonly config: Config; readonly answer: Answer };

/** What is served through Express, in the order in which a request meets it. */
export function makeApp({ config, answer }: AppOptions): Express {
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  app.set("query parser", "simple");
  if (config.trustProxy !== null) app.set("trust proxy", config.trustProxy);
  app.use((request: Request, response: Response, next: NextFunction) => {
    answer(request, response).catch(next);
  });
  // Whoever answers has caught what went wrong; what still arrives here could not even be written.
  app.use((_fault: unknown, _request: Request, response: Response, _next: NextFunction) => void response.destroy());
  return app;
}
