import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { withClient } from "../../../postgres/client/with-client.ts";
import { cloneDatabase } from "../../database.ts";
import { SECRET } from "../../secret.ts";
import { makeProjectFolder } from "./project.ts";

test("migrate seed runs db/seed.sql in one transaction, and names the line of an error", async () => {
  const database = await cloneDatabase("empty");
  try {
    await using project = await makeProjectFolder({
      DATABASE_URL: database.ownerUrl,
      JWT_SECRET: SECRET,
      BASE_SCHEMA: "none",
      MIGRATIONS_DIR: "db/migrations",
    });
    await withClient(database.ownerUrl, (client) => client.query("create table notes (id int primary key)"));
    const seed = (sql: string) => writeFile(join(project.folder, "db/seed.sql"), sql);
    expect(await project.run("migrate", "seed")).toMatchObject({ code: 1, stderr: "There is no db/seed.sql.\n" });
    await mkdir(join(project.folder, "db"));
    await seed("insert into notes values (1);\ninsert into notes values (1);\n");
    const failed = await project.run("migrate", "seed");
    expect(failed).toMatchObject({ code: 1, stderr: expect.stringContaining("db/seed.sql:2") });
    await seed("insert into notes values (1);\n");
    expect(await project.run("migrate", "seed")).toMatchObject({ code: 0 });
    const { rows } = await withClient(database.ownerUrl, (client) => client.query("select id from notes"));
    expect(rows).toEqual([{ id: 1 }]);
  } finally {
    await database.drop();
  }
});
