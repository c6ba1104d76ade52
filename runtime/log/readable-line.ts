import { styleText } from "node:util";

type LogRecord = {
  readonly level: string;
  readonly time: string;
  readonly msg: string;
  readonly request?: unknown;
  readonly err?: { readonly message?: string; readonly stack?: string };
} & Readonly<Record<string, unknown>>;

type Style = Parameters<typeof styleText>[0];

const LEVEL_STYLES: Readonly<Record<string, Style>> = { warn: "yellow", error: "red", fatal: "red" };

/** Returns a line of the log for a person at a terminal: `10:41:02 GET /rest/v1/films 200 in 2.1 ms`. */
export function toReadableLine(line: string): string {
  const { level, time, msg, err, request: _, ...fields } = JSON.parse(line) as LogRecord;
  const style = LEVEL_STYLES[level];
  const label = style === undefined ? [] : [colour(style, `${level}:`)];
  const words = msg === "request" ? requestWords(fields) : [visible(msg), ...fieldWords(fields)];
  const text = [colour("dim", new Date(time).toTimeString().slice(0, 8)), ...label, ...words].join(" ");
  return `${[text, ...errorLines(err)].join("\n")}\n`;
}

function requestWords({ method, path, status, milliseconds, ...others }: Readonly<Record<string, unknown>>): string[] {
  const style = Number(status) >= 500 ? "red" : Number(status) >= 400 ? "yellow" : "green";
  return [visible(`${method} ${path}`), colour(style, String(status)), `in ${milliseconds} ms`, ...fieldWords(others)];
}

function fieldWords(fields: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(fields).map(([name, value]) =>
    colour("dim", visible(`${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)),
  );
}

function errorLines({ message, stack }: NonNullable<LogRecord["err"]> = {}): string[] {
  const text = stack ?? message;
  return text === undefined ? [] : text.split("\n").map((line) => `  ${visible(line)}`);
}

/** Shows control characters, with which a client could change what the terminal shows. */
function visible(text: string): string {
  return text.replace(/\p{Cc}/gu, (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`);
}

function colour(style: Style, text: string): string {
  return styleText(style, text, { stream: process.stderr });
}
