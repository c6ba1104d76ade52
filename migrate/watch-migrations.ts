import { mkdir, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { applyCommitted, applyCurrent } from "./apply-migrations.ts";
import { slugOf } from "./commit.ts";
import { displayPath, listFiles, type MigrateSettings, type MigrationHistory } from "./committed-migrations.ts";
import { readCurrentFiles } from "./current-files.ts";
import type { ReportLine } from "./kept-rows.ts";
import { MigrationError } from "./migration-error.ts";
import { requireStatement, SqlScriptError } from "./sql-transaction.ts";

/** Files are polled, because file watchers miss changes in containers and on network drives. */
const POLL_MS = 250;
/** The distance of the numbers of files, so that there is room for others in between. */
const NUMBER_STEP = 10;

export type MigrationWatch = {
  /** Resolves when the files that existed at the start are applied, or have failed. */
  readonly begun: Promise<void>;
  /**
   * Adds a file to the project's `current/`, and resolves with its path when it is applied. If that fails, the file is removed, and the
   * error has the place in the SQL. Other files are never changed, because one that is applied again may drop the rows of its tables.
   */
  add(sql: string, subject: string): Promise<string>;
  stop(): Promise<void>;
};

/** Applies the files in `current/` whenever they change, until stopped. */
export function watchMigrations(settings: MigrateSettings, report: ReportLine): MigrationWatch {
  const current = new WatchedFiles(settings, report);
  const begun = Promise.withResolvers<void>();
  const stopped = Promise.withResolvers<void>();
  let isStopped = false;
  const polling = (async () => {
    let lastError = "";
    while (!isStopped) {
      await current.applyIfChanged().then(
        () => (lastError = ""),
        (error: Error) => {
          if (error.message !== lastError) report(`${error.message}\n  It is tried again on the next save.`);
          lastError = error.message;
        },
      );
      begun.resolve();
      await Promise.race([new Promise((done) => setTimeout(done, POLL_MS)), stopped.promise]);
    }
  })();
  return {
    begun: begun.promise,
    add: (sql, subject) => current.add(sql, subject),
    async stop() {
      isStopped = true;
      stopped.resolve();
      await polling;
    },
  };
}

/** The files in `current/`. Tasks run one at a time, so that no file is applied that is about to be removed. */
class WatchedFiles {
  readonly #settings: MigrateSettings;
  readonly #report: ReportLine;
  #last: Promise<unknown> = Promise.resolve();
  #seen = "";
  #isUpToDate = false;

  constructor(settings: MigrateSettings, report: ReportLine) {
    this.#settings = settings;
    this.#report = report;
  }

  applyIfChanged(): Promise<void> {
    return this.#inTurn(() => this.#applyIfChanged());
  }

  async add(sql: string, subject: string): Promise<string> {
    requireStatement(sql);
    return this.#inTurn(async () => {
      const file = await nameNewFile(this.#settings.histories.at(-1)!, subject);
      await mkdir(dirname(file), { recursive: true });
      await writeFile(file, `${sql.trim()}\n`, { flag: "wx" });
      try {
        await this.#applyIfChanged();
      } catch (error) {
        await rm(file, { force: true });
        const isOwn = error instanceof MigrationError && error.place.file === displayPath(file);
        throw isOwn ? new SqlScriptError(error.cause as Error, error.place) : error;
      }
      return displayPath(file);
    });
  }

  async #applyIfChanged(): Promise<void> {
    const { url, rootUrl, histories } = this.#settings;
    if (!this.#isUpToDate) await applyCommitted(url, rootUrl, histories);
    this.#isUpToDate = true;
    const files = await readCurrentFiles(histories);
    const now = JSON.stringify(files);
    if (now === this.#seen) return;
    this.#seen = now;
    await applyCurrent(this.#settings, this.#report, files);
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#last.then(work);
    this.#last = result.catch(() => {});
    return result;
  }
}

/** `0030-create-table-notes.sql`, after all others. */
export async function nameNewFile({ folder }: Pick<MigrationHistory, "folder">, subject: string): Promise<string> {
  const current = join(folder, "current");
  const numbers = (await listFiles(current)).map((name) => Number.parseInt(name, 10) || 0);
  const number = (Math.floor(Math.max(0, ...numbers) / NUMBER_STEP) + 1) * NUMBER_STEP;
  return join(current, `${String(number).padStart(4, "0")}-${slugOf(subject)}.sql`);
}
