import { stripVTControlCharacters } from "node:util";
import { Logger } from "graphile-migrate";
import type pg from "pg";

/** What graphile-migrate adds to an error of Postgres: the place, some lines of SQL, a mark below the last one. */
type LoggedError = Pick<pg.DatabaseError, "message" | "detail" | "hint"> & { readonly _gmMessageOverride?: string };

const PLACE = /line (\d+), column (\d+) of/;
const ADVICE = 'npm run migrate -- commit "what it does" keeps it';

/** A line for each save that is applied, and a few for one that is not. */
export function makeWatchLogger(print: (text: string) => void): Logger {
  let isUnchanged = false;
  return new Logger(() => (_level, message, meta) => {
    const [, milliseconds] = /: Finished \((\d+)ms/.exec(message) ?? [];
    if (meta?.error) print(toReport(meta.error as LoggedError));
    else if (message.endsWith("unchanged, skipping migration")) isUnchanged = true;
    else if (milliseconds === undefined) return;
    else {
      print(
        isUnchanged
          ? "db/migrations/current: the same SQL as before, nothing to apply"
          : `db/migrations/current: applied in ${milliseconds} ms; ${ADVICE}`,
      );
      isUnchanged = false;
    }
  });
}

function toReport({ message, detail, hint, _gmMessageOverride: override = "" }: LoggedError): string {
  const [head = "", ...snippet] = stripVTControlCharacters(override).split("\n");
  const [, line, column] = PLACE.exec(head) ?? [];
  const place = line === undefined ? "" : ` (line ${line}, column ${column})`;
  return [
    `db/migrations/current: not applied, ${message}${place}`,
    ...markedLine(snippet),
    ...[detail, hint].flatMap((each) => (each ? [`  ${each}`] : [])),
    "  All of it was undone; it is tried again at the next save.",
  ].join("\n");
}

/** The line of SQL with the mark below it; nothing where the mark is behind its end, for then it is another line. */
function markedLine(snippet: readonly string[]): string[] {
  const at = snippet.findIndex((line) => /^\| -*\^$/.test(line));
  const [sql = "", mark = ""] = snippet.slice(at - 1, at + 1).map((line) => line.slice(2));
  return at > 0 && mark.length <= sql.length ? [sql, mark.replaceAll("-", " ")] : [];
}
