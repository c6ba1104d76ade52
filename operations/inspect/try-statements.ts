import { lineAt } from "#migrate";
import { runScript, type ScriptMessage, type ScriptOutcome } from "../script/run-script.ts";

const STATEMENT_TIMEOUT_MS = 60_000;
/** The lock timeout. Other requests wait this long behind a lock that this session waits for. */
const LOCK_TIMEOUT_MS = 1_000;
const MAX_ROWS = 20;
const MAX_BYTES = 100_000;

type TryOptions = {
  /** The connection string of the owner. */
  readonly url: string;
  readonly connectTimeoutMs: number;
  readonly signal: AbortSignal;
};

/** The outcome of each statement as text. */
type TriedStatements = { readonly text: string; readonly hasFailed: boolean };

/** Runs statements in a transaction that is rolled back. */
export async function tryStatements(
  sql: string,
  { url, connectTimeoutMs, signal }: TryOptions,
): Promise<TriedStatements> {
  const outcome = await runScript({
    text: sql,
    url,
    context: null,
    readOnly: false,
    explain: null,
    commits: false,
    maxRows: MAX_ROWS,
    maxBytes: MAX_BYTES,
    statementTimeout: STATEMENT_TIMEOUT_MS,
    lockTimeout: LOCK_TIMEOUT_MS,
    connectTimeout: connectTimeoutMs,
    signal,
  });
  return { text: describeOutcome(outcome, sql), hasFailed: outcome.error !== null };
}

function describeOutcome({ results, notices, error }: ScriptOutcome, sql: string): string {
  const done = results.map(
    ({ statement, tag, milliseconds }) => `line ${lineAt(sql, statement.start)}: ${tag}, ${milliseconds.toFixed(1)} ms`,
  );
  const end = error
    ? [describeMessage(error, sql), "Everything was rolled back."]
    : ["All statements succeed. They were rolled back."];
  return [...done, ...notices.map((notice) => describeMessage(notice, sql)), ...end].join("\n");
}

function describeMessage({ severity, sqlstate, message, detail, hint, where, offset }: ScriptMessage, sql: string) {
  const place = offset === null ? "" : ` (line ${lineAt(sql, offset)})`;
  return [`${severity} ${sqlstate}${place}: ${message}`, detail, hint, where].filter(Boolean).join("\n  ");
}
