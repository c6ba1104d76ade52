import { readdirSync, readFileSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { applyCommitted } from "../migrate/apply-migrations.ts";
import { releaseHistories } from "../migrate/committed-migrations.ts";
import { runMigrations } from "../migrate/migrate.ts";
import { readMigrationState } from "../migrate/migration-state.ts";
import { withClient } from "../postgres/client/with-client.ts";
import { importSupabase, parseApis } from "../service/cli/supabase/import-project.ts";
import { cloneDatabase, type TestDatabase, urlOf } from "./database.ts";
import { REPOSITORY } from "./repository.ts";

const TEMPLATE = join(REPOSITORY, "templates/supabase");

/** Returns the contents of the first migration in a project of template `supabase`. */
export function readSupabaseTemplate(database: string): string {
  const folder = join(TEMPLATE, "sql");
  const texts = readdirSync(folder)
    .sort()
    .map((name) => readFileSync(join(folder, name), "utf8"));
  return texts.join("\n").replaceAll(":DATABASE_NAME", database);
}

/** The files of a Supabase project, by their paths in the folder `supabase`. */
export type SupabaseFiles = Readonly<Record<string, string>>;

export type SupabaseProject = {
  readonly database: TestDatabase;
  readonly changes: readonly string[];
  readonly settings: Readonly<Record<string, string>>;
};

/** Imports the project as `init --template supabase` does, and applies its migrations and its seed. */
export async function makeSupabaseProject(
  files: SupabaseFiles,
  options: { readonly apis?: string } = {},
): Promise<SupabaseProject> {
  const folder = await mkdtemp(join(tmpdir(), "supabase-project-"));
  const database = await cloneDatabase("platform");
  try {
    for (const [path, text] of Object.entries(files)) await write(join(folder, "supabase", path), text);
    const imported = await importSupabase({
      projectFolder: folder,
      templateFolder: TEMPLATE,
      apis: parseApis(options.apis),
    });
    for (const { path, text } of imported.files) await write(join(folder, path), text);
    const settings = {
      url: database.ownerUrl,
      shadowUrl: urlOf("postgres", `${database.name}_shadow`),
      rootUrl: urlOf("postgres", "postgres"),
      histories: [
        ...releaseHistories().filter(({ name }) => name === "platform"),
        { name: "project", folder: join(folder, "db/migrations") } as const,
      ],
    };
    // The trial in a scratch database would double the time.
    await applyCommitted(settings.url, settings.rootUrl, settings.histories);
    const { kind } = await withClient(settings.url, (client) => readMigrationState(client, settings.histories));
    if (kind !== "current") throw new Error(`After all migrations of the project the database is "${kind}".`);
    await runMigrations({ name: "seed", isOptional: true }, settings);
    return { database, changes: imported.changes, settings: imported.settings };
  } catch (error) {
    await database.drop();
    throw error;
  } finally {
    await rm(folder, { recursive: true });
  }
}

async function write(file: string, text: string): Promise<void> {
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, text);
}
