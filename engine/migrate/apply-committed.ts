import { fork } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { extname, join } from "node:path";
import type pg from "pg";
import { withClient } from "../pg-client/with-client.ts";
import {
  type CommittedMigration,
  committedMigrations,
  displayPath,
  type MigrationHistory,
} from "./committed-migrations.ts";
import { findErrorOffset, MigrationError, type MigrationSource } from "./migration-error.ts";
import { createRecord, explainDivergence, readMigrationState } from "./migration-state.ts";

/** The message to the child process. */
export type RunnerJob = {
  readonly url: string;
  readonly rootUrl: string;
  readonly histories: readonly MigrationHistory[];
};

/** The child process's message about an error of Postgres or graphile-migrate. */
export type RunnerError = {
  readonly history: MigrationHistory["name"];
  /** The fields of the Postgres error. */
  readonly error: { readonly message: string } & Record<string, unknown>;
};

/** Has the extension of this file: `.ts`, or `.js` in a build. */
const RUNNER = join(import.meta.dirname, `runner${extname(import.meta.filename)}`);

/** Applies the pending committed migrations, history by history. */
export async function applyCommitted(
  url: string,
  rootUrl: string,
  histories: readonly MigrationHistory[],
): Promise<void> {
  await withClient(url, async (client) => {
    const state = await readMigrationState(client, histories);
    if (state.kind === "diverged") throw new Error(explainDivergence(state));
    await createRecord(client);
  });
  // graphile-migrate would create the folder of a history without migrations.
  const committed = await Promise.all(histories.map(committedMigrations));
  const fault = await runInChildProcess({
    url,
    rootUrl,
    histories: histories.filter((_, index) => committed[index]!.length > 0),
  });
  if (fault) throw await toMigrationError(url, histories, fault);
}

/**
 * Runs in a child process, because graphile-migrate exits the process when it loses an idle connection.
 * Connection strings are sent by a message, so that process lists do not show them.
 */
async function runInChildProcess(job: RunnerJob): Promise<RunnerError | null> {
  const child = fork(RUNNER, { execArgv: [], stdio: ["ignore", "ignore", "pipe", "ipc"] });
  let fault: RunnerError | null = null;
  let output = "";
  child.on("message", (message) => (fault = message as RunnerError));
  child.stderr!.on("data", (chunk) => (output += chunk));
  child.send(job);
  const [code] = await once(child, "close");
  if (code !== 0 && !fault) throw new Error(`The migrations could not be applied:\n${output.trim()}`);
  return fault;
}

/** The failed migration is the first of its history that is not recorded as applied. */
async function toMigrationError(
  url: string,
  histories: readonly MigrationHistory[],
  { history, error }: RunnerError,
): Promise<Error> {
  const failed = Object.assign(new Error(error.message), error);
  return withClient(url, async (client) => {
    const { rows } = await client.query<{ count: number }>(
      "select count(*)::int as count from graphile_migrate.histories where history = $1",
      [history],
    );
    const committed = await committedMigrations(histories.find(({ name }) => name === history)!);
    const migration = committed[rows[0]!.count];
    if (!migration) return failed;
    const source = await readSource(migration);
    const sql = await fillPlaceholders(client, source.sql);
    return new MigrationError(failed, { ...source, sql }, await findErrorOffset(client, sql, failed));
  });
}

/** The body, with the line numbers in the file. */
async function readSource({ file, body }: CommittedMigration): Promise<MigrationSource> {
  const text = await readFile(file, "utf8");
  const sql = body.trim();
  const first = text.slice(0, text.indexOf(sql)).split("\n").length;
  const origins = sql.split("\n").map((_, index) => ({ file: displayPath(file), line: first + index }));
  return { sql, origins };
}

/** Replaces the placeholders that graphile-migrate replaces in committed migrations. */
export async function fillPlaceholders(client: pg.ClientBase, sql: string): Promise<string> {
  const { rows } = await client.query<{ database: string; owner: string }>(
    "select current_database() as database, session_user as owner",
  );
  const { database, owner } = rows[0]!;
  return sql.replace(/:DATABASE_NAME\b/g, () => database).replace(/:DATABASE_OWNER\b/g, () => owner);
}
