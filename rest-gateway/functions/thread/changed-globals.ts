import { format } from "node:util";
import type { LogLevel } from "./messages.ts";

const METHODS: Readonly<Record<string, LogLevel>> = {
  debug: "debug",
  trace: "debug",
  log: "info",
  info: "info",
  dir: "info",
  table: "info",
  warn: "warn",
  error: "error",
};
const MAX_TEXT = 10_000;
/** The limit of log lines: a function that writes without end must not fill the gateway's memory. */
const MAX_LINES_PER_SECOND = 200;

type WriteLine = (level: LogLevel, text: string) => void;

/** Sends the lines of `console` to the gateway's log. */
export function captureConsole(write: WriteLine): void {
  let second = 0;
  let lines = 0;
  const writeBounded: WriteLine = (level, text) => {
    const now = Math.floor(performance.now() / 1000);
    if (now !== second) {
      if (lines > MAX_LINES_PER_SECOND) write("warn", `${lines - MAX_LINES_PER_SECOND} lines were left out`);
      second = now;
      lines = 0;
    }
    lines += 1;
    if (lines <= MAX_LINES_PER_SECOND) write(level, text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)} …` : text);
  };
  for (const [name, level] of Object.entries(METHODS))
    Object.assign(console, { [name]: (...values: unknown[]) => writeBounded(level, format(...values)) });
}

/**
 * Installs `fetch`. As in Deno, a response has no header of an encoding that was removed from its body: functions return
 * such responses as their own.
 */
export function installFetch(): void {
  const fetchEncoded = globalThis.fetch;
  globalThis.fetch = async (input, init) => {
    const response = await fetchEncoded(input, init);
    if (!response.headers.has("content-encoding") || !response.body) return response;
    const headers = new Headers(response.headers);
    headers.delete("content-encoding");
    headers.delete("content-length");
    const { status, statusText, url, redirected, type } = response;
    const decoded = new Response(response.body, { status, statusText, headers });
    const members = Object.entries({ url, redirected, type });
    return Object.defineProperties(
      decoded,
      Object.fromEntries(members.map(([name, value]) => [name, { value, configurable: true }])),
    );
  };
}
