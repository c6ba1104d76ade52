import { type Logger, pino } from "pino";
import type { Config } from "./config/config.ts";

export type { Logger };

/** Names under which a secret could ever reach a log line. */
const SECRETS = [
  "authorization",
  "cookie",
  "apikey",
  "api_key",
  "password",
  "token",
  "refreshToken",
  "secret",
  "SAMLResponse",
];

/** One JSON object per line on standard error; standard output is for people. */
export function makeLogger(
  { logLevel }: Pick<Config, "logLevel">,
  base: Readonly<Record<string, unknown>> = {},
): Logger {
  return pino(
    {
      level: logLevel === "crit" ? "fatal" : logLevel,
      base,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: SECRETS.flatMap((name) => [`["${name}"]`, `*["${name}"]`]), censor: "[hidden]" },
    },
    pino.destination({ dest: 2, sync: false }),
  );
}
