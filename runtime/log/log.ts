import { type LevelWithSilent, type Logger, pino } from "pino";
import { toReadableLine } from "./readable-line.ts";
import { standardError } from "./standard-streams.ts";

export type { Logger };

/** The names of fields that might contain a secret in a log line. */
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

/** Writes one JSON object per line to standard error, or lines for a person if that is a terminal. */
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
    process.stderr.isTTY ? { write: (line: string) => destination.write(toReadableLine(line)) } : destination,
  );
  destination.onRecovery = (dropped) =>
    log.warn({ dropped }, "lines of the log could not be written, and were dropped");
  return log;
}

/** Returns the number of log lines that could not be written. */
export function droppedLogLines(): number {
  return standardError().dropped;
}
