import { fork } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { withClient } from "../with-client.ts";
import { committedMigrations, type Migration, shownFile } from "./committed.ts";
import type { History } from "./histories.ts";
import { MigrationError, placeOfFault, type Source } from "./migration-error.ts";
import { fillPlaceholders } from "./placeholders.ts";
import { makeRecord } from "./record.ts";
import { divergedAdvice, migrationState } from "./state.ts";

/** What the child process is sent. */
export type RunnerJob = { readonly url: string; readonly rootUrl: string; readonly histories: readonly History[] };

/** What it answers, where Postgres or graphile-migrate refused. */
export type RunnerFault = {
  readonly history: History["name"];
  /** Fields of Postgres's error. */
  readonly error: { readonly message: string } & Record<string, unknown>;
};

/** With the ending that this file has: it may have been built. */
const RUNNER = join(import.meta.dirname, `runner${extname(import.meta.filename)}`);

/** Applies the committed migrations that the database does not have, history by history. */
export async function applyCommitted(url: string, rootUrl: string, histories: readonly History[]): Promise<void> {
  await withClient(url, async (client) => {
    const state = await migrationState(client, histories);
    if (state.kind === "diverged") throw new Error(divergedAdvice(state));
    await makeRecord(client);
  });
  // graphile-migrate would make the folder of a history that has none.
  const committed = await Promise.all(histories.map(committedMigrations));
  const fault = await runChild({
    url,
    rootUrl,
    histories: histories.filter((_, index) => committed[index]!.length > 0),
  });
  if (fault) throw await explain(url, histories, fault);
}

/**
 * In a process of its own: graphile-migrate ends the whole process when one of its idle connections is lost.
 * The connection strings travel by a message, where no process list shows them.
 */
async function runChild(job: RunnerJob): Promise<RunnerFault | null> {
  const child = fork(RUNNER, { execArgv: [], stdio: ["ignore", "ignore", "pipe", "ipc"] });
  let fault: RunnerFault | null = null;
  let output = "";
  child.on("message", (message) => (fault = message as RunnerFault));
  child.stderr!.on("data", (chunk) => (output += chunk));
  child.send(job);
  const [code] = await once(child, "close");
  if (code !== 0 && !fault) throw new Error(`The migrations could not be applied:\n${output.trim()}`);
  return fault;
}

/** The migration that failed is the first one of its history that is not recorded. */
async function explain(url: string, histories: readonly History[], { history, error }: RunnerFault): Promise<Error> {
  const failed = Object.assign(new Error(error.message), error);
  return withClient(url, async (client) => {
    const { rows } = await client.query<{ count: number }>(
      "select count(*)::int as count from graphile_migrate.histories where history = $1",
      [history],
    );
    const committed = await committedMigrations(histories.find(({ name }) => name === history)!);
    const migration = committed[rows[0]!.count];
    if (!migration) return failed;
    const source = await sourceOf(migration);
    const sql = await fillPlaceholders(client, source.sql);
    return new MigrationError(failed, { ...source, sql }, await placeOfFault(client, sql, failed));
  });
}

/** The body with the lines of the file. */
async function sourceOf({ file, body }: Migration): Promise<Source> {
  const text = await readFile(file, "utf8");
  const sql = body.trim();
  const first = text.slice(0, text.indexOf(sql)).split("\n").length;
  const origins = sql.split("\n").map((_, index) => ({ file: shownFile(file), line: first + index }));
  return { sql, origins };
}
