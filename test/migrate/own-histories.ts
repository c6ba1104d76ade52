import { cp, mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { schemaFileOf } from "../../migrate/commit.ts";
import {
  committedMigrations,
  type MigrateSettings,
  type MigrationHistory,
  releaseHistories,
  writeMigration,
} from "../../migrate/committed-migrations.ts";
import { withClient } from "../../postgres/client/with-client.ts";
import { cloneDatabase, urlOf } from "../database.ts";

/** A database, a copy of the release's migrations and a project without any. */
export type OwnHistories = AsyncDisposable & {
  readonly settings: MigrateSettings;
  readonly requestUrl: string;
  history(name: MigrationHistory["name"]): MigrationHistory;
  /** Adds a committed migration, as a release or a colleague brings it. */
  add(name: MigrationHistory["name"], message: string, sql: string): Promise<string>;
  /** Writes a file of `current/`. */
  write(name: MigrationHistory["name"], file: string, sql: string): Promise<void>;
  committed(name: MigrationHistory["name"]): Promise<string[]>;
  /** Rows as the owner sees them. */
  rows(sql: string): Promise<Record<string, unknown>[]>;
  shadowExists(): Promise<boolean>;
};

type OwnHistoriesOptions = {
  /** The database has the release's migrations already. Otherwise it is empty, and the first command applies them. */
  readonly isMigrated?: boolean;
};

export async function ownHistories(
  names: readonly MigrationHistory["name"][] = ["platform", "content"],
  { isMigrated = false }: OwnHistoriesOptions = {},
): Promise<OwnHistories> {
  const release = names.includes("content") ? "content" : "platform";
  const database = await cloneDatabase(isMigrated ? release : "empty");
  const folder = await mkdtemp(join(tmpdir(), "histories-"));
  for (const { name, folder: released } of releaseHistories()) {
    if (names.includes(name)) await cp(released, join(folder, name), { recursive: true });
  }
  await cp(schemaFileOf(releaseHistories()[0]!), join(folder, "schema.sql"));
  const histories = ([...names, "project"] as const).map((name) => ({ name, folder: join(folder, name) }));
  const shadow = `${database.name}_shadow`;
  const rootUrl = urlOf("postgres", "postgres");
  const history = (wanted: MigrationHistory["name"]) => histories.find(({ name }) => name === wanted)!;
  return {
    settings: {
      url: database.ownerUrl,
      shadowUrl: urlOf("postgres", shadow),
      rootUrl,
      histories,
    },
    requestUrl: database.url,
    history,
    async add(name, message, sql) {
      const before = await committedMigrations(history(name));
      const { text } = writeMigration({ previous: before.at(-1)?.hash ?? null, message, body: sql });
      const committed = join(history(name).folder, "committed");
      await mkdir(committed, { recursive: true });
      const file = `${String(before.length + 1).padStart(6, "0")}-${message.replaceAll(" ", "-")}.sql`;
      await writeFile(join(committed, file), text);
      return file;
    },
    async write(name, file, sql) {
      const current = join(history(name).folder, "current");
      await mkdir(current, { recursive: true });
      await writeFile(join(current, file), sql);
    },
    committed: async (name) => (await readdir(join(history(name).folder, "committed")).catch(() => [])).sort(),
    rows: (sql) => withClient(database.ownerUrl, async (client) => (await client.query(sql)).rows),
    shadowExists: () =>
      withClient(
        rootUrl,
        async (client) => (await client.query("select from pg_database where datname = $1", [shadow])).rowCount === 1,
      ),
    async [Symbol.asyncDispose]() {
      await database.drop();
      await rm(folder, { recursive: true });
    },
  };
}
