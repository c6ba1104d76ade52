import type pg from "pg";
import { withClient } from "../with-client.ts";
import { applyCommitted } from "./apply-committed.ts";
import { shownFile } from "./committed.ts";
import { type CurrentFile, currentFiles } from "./current.ts";
import type { History, MigrateSettings } from "./histories.ts";
import { MigrationError, placeOfFault } from "./migration-error.ts";
import { fillPlaceholders } from "./placeholders.ts";
import { splitStatements } from "./split-statements.ts";

const COMMIT = 'npm run migrate -- commit "what it does"';

type Tell = (line: string) => void;

/** How often files are looked at: what watches files misses changes in containers and on network drives. */
const LOOK_MS = 250;

export type WatchedMigrations = { stop(): Promise<void> };

/** Applies the files of `current/` at each change, until it is stopped. */
export function watchMigrations(settings: Required<MigrateSettings>, tell: Tell): WatchedMigrations {
  const stopped = Promise.withResolvers<void>();
  let isStopped = false;
  let seen = "";
  let isUpToDate = false;
  const look = async () => {
    if (!isUpToDate) await applyCommitted(settings.url, settings.rootUrl, settings.histories);
    isUpToDate = true;
    const files = await readAll(settings.histories);
    const now = JSON.stringify(files);
    if (now === seen) return;
    seen = now;
    await applyCurrent(settings, tell, files);
  };
  const watching = (async () => {
    let told = "";
    while (!isStopped) {
      await look().then(
        () => (told = ""),
        (error: Error) => {
          if (error.message !== told) tell(`${error.message}\n  It is tried again on the next save.`);
          told = error.message;
        },
      );
      await Promise.race([new Promise((done) => setTimeout(done, LOOK_MS)), stopped.promise]);
    }
  })();
  return {
    async stop() {
      isStopped = true;
      stopped.resolve();
      await watching;
    },
  };
}

/**
 * Applies the files of `current/` that have changed since they were last applied to this database, and those after them; each in
 * a transaction of its own.
 */
export async function applyCurrent(
  { url, histories }: Required<MigrateSettings>,
  tell: Tell,
  files?: readonly CurrentFile[],
): Promise<void> {
  const wanted = files ?? (await readAll(histories));
  await withClient(url, async (client) => {
    const applied = await appliedContents(client);
    const first = wanted.findIndex((file) => essenceOf(applied.get(keyOf(file))) !== essenceOf(file.sql));
    const changed = first < 0 ? [] : wanted.slice(first);
    const gone = [...applied.keys()].filter((key) => !wanted.some((file) => keyOf(file) === key));
    await client.query("delete from graphile_migrate.current where filename = any($1)", [
      [...gone, ...changed.map(keyOf)],
    ]);
    for (const file of changed) {
      const begun = performance.now();
      await apply(client, file);
      tell(`${shownFile(file.file)}: applied in ${Math.round(performance.now() - begun)} ms`);
    }
    if (changed.length > 0) tell(`  When it is right: ${COMMIT}`);
    else if (wanted.length > 0) tell("The migration in current/ is applied; nothing has changed.");
  });
}

async function apply(client: pg.ClientBase, file: CurrentFile): Promise<void> {
  const sql = await fillPlaceholders(client, file.sql);
  try {
    if (file.transaction) await client.query("begin");
    await client.query(sql);
    await client.query("insert into graphile_migrate.current (filename, content) values ($1, $2)", [
      keyOf(file),
      file.sql,
    ]);
    if (file.transaction) await client.query("commit");
  } catch (error) {
    if (file.transaction) await client.query("rollback");
    throw new MigrationError(error as Error, { ...file, sql }, await placeOfFault(client, sql, error as Error));
  }
}

async function readAll(histories: readonly History[]): Promise<CurrentFile[]> {
  return (await Promise.all(histories.map(currentFiles))).flat();
}

async function appliedContents(client: pg.ClientBase): Promise<Map<string, string>> {
  const { rows } = await client.query<{ filename: string; content: string }>(
    "select filename, content from graphile_migrate.current",
  );
  return new Map(rows.map(({ filename, content }) => [filename, content]));
}

/** Without the comments between statements: whoever changes one wants to keep the rows. */
function essenceOf(sql: string | undefined): string | null {
  return sql === undefined ? null : JSON.stringify(splitStatements(sql).map((statement) => statement.sql));
}

function keyOf({ history, name }: CurrentFile): string {
  return `${history}/${name}`;
}
