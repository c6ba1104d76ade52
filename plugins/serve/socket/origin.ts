import type { IncomingHttpHeaders } from "node:http";
import type { Config } from "../../../engine/config/config.ts";

/** Browsers open sockets for any page and ask nobody: the rule of CORS has to be applied here. Other clients send no origin. */
export function isWelcome({ origin, host }: IncomingHttpHeaders, allowed: Config["corsOrigins"]): boolean {
  if (origin === undefined || allowed === "*" || allowed.includes(origin)) return true;
  return URL.parse(origin)?.host === host;
}
