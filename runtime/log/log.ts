import { type LevelWithSilent, type Logger, pino } from "pino";
import { standardError } from "./standard-streams.ts";

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
  { logLevel }: { readonly logLevel: LevelWithSilent | "crit" },
  base: Readonly<Record<string, unknown>> = {},
): Logger {
  const destination = standardError();
  const log = pino(
    {
      level: logLevel === "crit" ? "fatal" : logLevel,
      base,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: SECRETS.flatMap((name) => [`["${name}"]`, `*["${name}"]`]), censor: "[hidden]" },
    },
    destination,
  );
  destination.onRecovery = (dropped) =>
    log.warn({ dropped }, "lines of the log could not be written, and were dropped");
  return log;
}

/** How many lines of the log could not be written. */
export function droppedLogLines(): number {
  return standardError().dropped;
}
