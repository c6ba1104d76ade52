import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { applyCommitted } from "../../migrate/apply-migrations.ts";
import { releaseHistories, writeMigration } from "../../migrate/committed-migrations.ts";
import { cloneDatabase, urlOf } from "../database.ts";

test.each([
  [
    "alter table auth.user_roles drop constraint user_roles_user_id_fkey;",
    "is called content_service_user_roles_user_id_fkey",
  ],
  ["create function private.f() returns int language sql as 'select 1';", "The schema of the service is called"],
])("an error says the present name of what it names: %s", async (sql, hint) => {
  const folder = await mkdtemp(join(tmpdir(), "migrations-"));
  const database = await cloneDatabase("platform");
  try {
    await mkdir(join(folder, "committed"));
    const { text } = writeMigration({ previous: null, message: null, body: sql });
    await writeFile(join(folder, "committed/000001.sql"), text);
    const histories = [...releaseHistories().slice(0, 1), { name: "project", folder } as const];
    const applied = applyCommitted(database.ownerUrl, urlOf("postgres", "postgres"), histories);
    await expect(applied).rejects.toThrow(hint);
  } finally {
    await database.drop();
    await rm(folder, { recursive: true });
  }
});
