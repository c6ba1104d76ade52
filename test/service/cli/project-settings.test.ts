import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { withClient } from "../../../postgres/client/with-client.ts";
import { cloneDatabase } from "../../database.ts";
import { REPOSITORY } from "../../repository.ts";
import { SECRET } from "../../secret.ts";
import { makeProjectFolder } from "./project.ts";

const TABLES =
  "select nspname || '.' || relname as name from pg_class join pg_namespace on pg_namespace.oid = relnamespace where relkind = 'r'";

async function tablesOf(url: string): Promise<string[]> {
  const { rows } = await withClient(url, (client) => client.query<{ name: string }>(TABLES));
  return rows.map(({ name }) => name);
}

describe("a project's settings", () => {
  test("are read from package.json and .env, and the environment takes precedence", async () => {
    await using project = await makeProjectFolder({ LOG_LEVEL: "warn" });
    const settings = { PORT: 4001, RATE_LIMIT: 7, MAX_BODY_BYTES: 2000, LOG_LEVEL: "debug" };
    await writeFile(join(project.folder, "package.json"), JSON.stringify({ "content-service": settings }));
    await writeFile(join(project.folder, ".env"), "RATE_LIMIT=8\nLOG_LEVEL=error\n");
    const { stdout } = await project.run("config");
    expect(stdout).toMatch(/^PORT=0 /m);
    expect(stdout).toMatch(/^LOG_LEVEL=warn /m);
    expect(stdout).toMatch(/^RATE_LIMIT=8 /m);
    expect(stdout).toMatch(/^MAX_BODY_BYTES=2000 /m);
  });

  test("that are unknown stop every command", async () => {
    await using project = await makeProjectFolder();
    await writeFile(
      join(project.folder, "package.json"),
      JSON.stringify({ "content-service": { BASE_SCHEMAS: "none" } }),
    );
    const result = await project.run("config");
    expect(result).toMatchObject({ code: 1, stderr: expect.stringContaining('"BASE_SCHEMAS" is not a setting') });
  });

  test.each([
    { base: "platform", has: ["auth.users"], lacks: ["public.articles", "public.users"] },
    { base: "content", has: ["auth.users", "public.articles"], lacks: [] },
    { base: "none", has: [], lacks: ["auth.users", "public.articles"] },
  ])(
    "BASE_SCHEMA=$base selects the release's migrations, and the project's begin at 000001",
    async ({ base, has, lacks }) => {
      const database = await cloneDatabase("empty");
      try {
        await using project = await makeProjectFolder({
          DATABASE_URL: database.ownerUrl,
          JWT_SECRET: SECRET,
          BASE_SCHEMA: base,
          MIGRATIONS_DIR: "db/migrations",
        });
        const current = join(project.folder, "db/migrations/current");
        await mkdir(current, { recursive: true });
        await writeFile(
          join(current, "0010-notes.sql"),
          "create table if not exists public.notes (id int primary key);",
        );
        expect(await project.run("migrate", "commit", "add notes")).toMatchObject({ code: 0 });
        expect(await readdir(join(project.folder, "db/migrations/committed"))).toEqual(["000001-add-notes.sql"]);
        const release = await readFile(join(REPOSITORY, "db/schema.sql"), "utf8");
        expect(await project.run("migrate", "dump")).toMatchObject({ code: 0, stdout: "schema.sql is up to date.\n" });
        expect(await readFile(join(REPOSITORY, "db/schema.sql"), "utf8")).toBe(release);
        expect(release).toContain("create table public.articles ");
        const schema = await readFile(join(project.folder, "db/migrations/schema.sql"), "utf8");
        expect(schema).toContain("create table public.notes");
        for (const name of has) expect(schema).toContain(`create table ${name} `);
        const tables = await tablesOf(database.ownerUrl);
        expect(tables).toEqual(expect.arrayContaining(["public.notes", ...has]));
        for (const name of lacks) expect(tables).not.toContain(name);
      } finally {
        await database.drop();
      }
    },
  );
});
