import type { SqlResponse } from "#operations/admin-types";
import { isAborted } from "../api/client.ts";
import type { ViewedCaller } from "../api/viewed-caller.ts";
import type { CodeProblem } from "../components/code-editor.ts";
import { makeStore } from "../store.ts";
import { ROLE_PREFIX, runSql, type SqlOptions, VIEWED } from "./sql-request.ts";
import { addToHistory, queryHistory } from "./stored-queries.ts";

/** The part of a query's text that runs. */
export type RunText = { readonly sql: string; readonly start: number };

export type QueryRun = RunText & {
  readonly options: SqlOptions;
  readonly startedAt: number;
} & (
    | { readonly state: "running"; readonly stop: () => void }
    | { readonly state: "done"; readonly response: SqlResponse }
    /** The error is null if the run was cancelled. */
    | { readonly state: "failed"; readonly error: Error | null }
  );

/** The last run of each query, by its id. Runs continue while another page is shown. */
export const queryRuns = makeStore<Readonly<Record<string, QueryRun>>>({});

export async function startRun(
  query: string,
  text: RunText,
  options: SqlOptions,
  viewed: ViewedCaller | null,
): Promise<void> {
  const controller = new AbortController();
  const run = { ...text, options, startedAt: Date.now() };
  const show = (shown: QueryRun) => queryRuns.set({ ...queryRuns.get(), [query]: shown });
  show({ ...run, state: "running", stop: () => controller.abort() });
  try {
    const response = await runSql(text.sql, options, viewed, controller.signal);
    show({ ...run, state: "done", response });
    keepInHistory(run, options, viewed, response.error?.message ?? null);
  } catch (error) {
    show({ ...run, state: "failed", error: isAborted(error) ? null : (error as Error) });
  }
}

function keepInHistory(
  { sql, startedAt }: RunText & { readonly startedAt: number },
  { as }: SqlOptions,
  viewed: ViewedCaller | null,
  error: string | null,
): void {
  const name = as === VIEWED ? (viewed?.label ?? as) : as.replace(ROLE_PREFIX, "");
  const entry = { at: startedAt, text: sql, as: name, milliseconds: Date.now() - startedAt, error };
  queryHistory.set(addToHistory(queryHistory.get(), entry));
}

const NO_PROBLEMS: readonly CodeProblem[] = [];

/** Returns the position of the error, unless the text was changed meanwhile. */
export function problemsOf(run: QueryRun | undefined, text: string): readonly CodeProblem[] {
  const error = run?.state === "done" ? run.response.error : null;
  if (!run || !error || error.offset === null || !text.startsWith(run.sql, run.start)) return NO_PROBLEMS;
  const from = run.start + error.offset;
  const word = /^(?:[\w$.]+|"[^"]*"|\S)/.exec(text.slice(from))?.[0] ?? "";
  return [{ from, to: from + word.length, message: error.message }];
}
