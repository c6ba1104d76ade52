import { join } from "node:path";
import type pg from "pg";
import { makeRoomForApiSchema, withClient } from "#postgres/client";
import { ApiError, commandLine } from "#runtime";
import { committedMigrations, displayPath, listFiles, type MigrateSettings } from "./committed-migrations.ts";
import { readCurrentFiles } from "./current-files.ts";
import { type DryRun, dryRun, type RowCountRequest } from "./dry-run.ts";
import { MigrationError } from "./migration-error.ts";
import { appliedMigrations } from "./migration-state.ts";
import { runSql, SqlScriptError } from "./sql-transaction.ts";
import { type MigrationUndo, undoMigration } from "./undo-migration.ts";
import { type MigrationWatch, nameNewFile } from "./watch-migrations.ts";

/** How SQL that changes the schema is applied: as a file of the current migration, at once, or not at all. */
type SchemaChangeMode = "current" | "run" | "off";

type SchemaChangeState = {
  readonly mode: SchemaChangeMode;
  /** The reason, in a sentence. */
  readonly reason: string;
  /** The way to make changes possible; null if they are possible. */
  readonly how: string | null;
  /** The folder of the current migration. */
  readonly folder: string;
  /** The files of the current migration, of all histories. */
  readonly files: readonly string[];
  /** Committed migrations of this project, and those among them that the database does not have. */
  readonly committed: readonly string[];
  readonly pending: readonly string[];
  /** The file of the current migration that a change of that subject would become; null if no subject is named. */
  readonly new_file: string | null;
};

/** How the schema was changed: the file that was written, or null. */
type AppliedChange = { readonly mode: SchemaChangeMode; readonly file: string | null };

type SqlRefusal = Pick<SchemaChangeState, "reason" | "how">;

export type SchemaChanges = {
  /** The mode is `off` too if the migrations cannot be read; `state` has the reason. */
  mode(): Promise<SchemaChangeMode>;
  state(subject?: string): Promise<SchemaChangeState>;
  /** The reason why SQL of administrators is not run, not even as a trial; null if it is run. */
  refusal(): SqlRefusal | null;
  /** Throws if there is a refusal. */
  requireEnabled(): void;
  /** Changes nothing. Throws a SchemaChangeError if the SQL fails. */
  dryRun(sql: string, counted?: RowCountRequest): Promise<DryRun>;
  /** Resolves when the SQL is applied. Throws a SchemaChangeError if it fails. The subject names the file. */
  apply(sql: string, subject: string): Promise<AppliedChange>;
  /** Describes how the last migration is undone. Undoes it only if its file is the confirmed one, and nothing was changed since. */
  undo(options: { readonly confirmedFile: string | null; readonly signal: AbortSignal }): Promise<MigrationUndo>;
};

type SchemaChangeOptions = {
  readonly settings: MigrateSettings;
  /** Null unless the files in `current/` are applied on every save. */
  readonly watch: () => MigrationWatch | null;
  /** True if the SQL of administrators is run at all. */
  readonly isEnabled: boolean;
  /** Resolves when the service knows the changed schema. */
  readonly reloadCatalog: () => Promise<void>;
};

/** Changes the schema as the owner, never past migrations. */
export function makeSchemaChanges(options: SchemaChangeOptions): SchemaChanges {
  const { settings, watch, isEnabled, reloadCatalog } = options;
  const { url } = settings;
  const requireEnabled = () => {
    if (isEnabled) return;
    throw new ApiError("forbidden", "PERMISSION_DENIED", DISABLED.reason, { hint: DISABLED.how });
  };
  const state = async (subject?: string) => {
    const found = await readMigrations(settings);
    const newFile = subject === undefined ? null : displayPath(await nameNewFile(settings.histories.at(-1)!, subject));
    return { ...(isEnabled ? chooseMode(found, watch() !== null) : DISABLED), ...found.files, new_file: newFile };
  };
  return {
    state,
    refusal: () => (isEnabled ? null : { reason: DISABLED.reason, how: DISABLED.how }),
    requireEnabled,
    mode: () =>
      state().then(
        ({ mode }) => mode,
        () => "off",
      ),
    async dryRun(sql, counted) {
      requireEnabled();
      return withClient(url, (client) => dryRun(client, sql, counted)).catch(rethrowWithPlace);
    },
    async apply(sql, subject) {
      requireEnabled();
      const watched = watch();
      const { mode, reason, how } = chooseMode(await readMigrations(settings), watched !== null);
      if (mode === "off") throw new ApiError("conflict", "MIGRATIONS_REQUIRED", reason, { hint: how });
      const file = watched ? await watched.add(sql, subject).catch(rethrowWithPlace) : null;
      if (!watched) await withClient(url, (client) => applySql(client, sql)).catch(rethrowWithPlace);
      await reloadCatalog();
      return { mode, file };
    },
    async undo({ confirmedFile, signal }) {
      requireEnabled();
      const isConfirmed = confirmedFile !== null;
      const options = { isConfirmed, isForced: false, onlyFile: confirmedFile, signal, report: () => {} };
      const undone = await undoMigration(settings, options);
      if (undone.isUndone) await reloadCatalog();
      return undone;
    },
  };
}

async function applySql(client: pg.ClientBase, sql: string): Promise<void> {
  await makeRoomForApiSchema(client, sql);
  await runSql(client, sql);
}

type Migrations = {
  readonly files: Pick<SchemaChangeState, "folder" | "files" | "committed" | "pending">;
  /** The folder of the project's migrations; null if it contains none. */
  readonly found: string | null;
  /** True if the database has migrations of a project. */
  readonly isMigrated: boolean;
};

async function readMigrations({ url, histories }: MigrateSettings): Promise<Migrations> {
  const project = histories.at(-1)!;
  const current = join(project.folder, "current");
  const names = await committedMigrations(project).then((all) => all.map(({ name }) => name), rethrowAsConflict);
  const files = await readCurrentFiles(histories).catch(rethrowAsConflict);
  const applied = (await withClient(url, appliedMigrations)).filter(({ history }) => history === project.name);
  const hasMigrations = names.length > 0 || (await listFiles(current)).some((name) => name.endsWith(".sql"));
  return {
    files: {
      folder: displayPath(current),
      files: files.map(({ file }) => displayPath(file)),
      committed: names,
      pending: names.filter((name) => !applied.some((migration) => migration.name === name)),
    },
    found: hasMigrations ? displayPath(project.folder) : null,
    isMigrated: applied.length > 0,
  };
}

type ModeChoice = Pick<SchemaChangeState, "mode" | "reason" | "how">;

const DISABLED = {
  mode: "off",
  reason: "The SQL of administrators is not run here.",
  how: "Set STUDIO_SQL=true.",
} as const satisfies ModeChoice;

function chooseMode({ files, found, isMigrated }: Migrations, isWatched: boolean): ModeChoice {
  if (isWatched) {
    return { mode: "current", reason: `Changes are files in ${files.folder}, applied on every save.`, how: null };
  }
  if (found === null && !isMigrated) {
    return { mode: "run", reason: "This project has no migrations, so changes are run at once.", how: null };
  }
  return {
    mode: "off",
    reason:
      found === null
        ? "The database has migrations of a project that is not here, and a change without a migration would be lost."
        : `The schema has migrations in ${found}, and a change without one would be missing in other databases.`,
    how: `Run the service with ${commandLine("dev")}, or copy the SQL into a migration.`,
  };
}

/** Reports a file that has the wrong name, or was changed after its commit, as a conflict. */
function rethrowAsConflict(error: Error): never {
  throw new ApiError("conflict", "MIGRATIONS_REQUIRED", error.message, { cause: error });
}

/** The SQL failed; nothing was changed. The cause is the error of Postgres. */
export class SchemaChangeError extends Error {
  /** The place in the SQL, or in the named file, which is an earlier file of the current migration. */
  readonly place: { readonly file: string | null; readonly line: number; readonly column: number };

  constructor({ cause, place }: SqlScriptError | MigrationError) {
    super((cause as Error).message, { cause });
    this.place = { file: null, ...place };
  }
}

function rethrowWithPlace(error: unknown): never {
  throw error instanceof SqlScriptError || error instanceof MigrationError ? new SchemaChangeError(error) : error;
}
