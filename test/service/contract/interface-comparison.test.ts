import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { SCHEMAS, schemaSql } from "../../../bench/catalogue/schemas.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { cloneDatabase } from "../../database.ts";
import { tokenFor } from "../../operations/admin/operated-service.ts";
import { serveApart } from "../../rest-gateway/table/serving-process.ts";

/** In the serving thread the comparison of 1,000 tables held it for 11,600. */
const LONGEST_HOLD_MS = 200;

test("comparing the interfaces of many tables does not block the event loop", async () => {
  const database = await cloneDatabase("platform");
  const folder = await mkdtemp(join(tmpdir(), "project-"));
  await mkdir(join(folder, "current"));
  await writeFile(join(folder, "current/0010-drop.sql"), "alter table public.thing_1 drop column column_0;\n");
  await withClient(database.ownerUrl, async (client) => {
    for (const sql of schemaSql({ ...SCHEMAS.gitlab, tables: 80, foreignKeys: 136, roles: 0 })) await client.query(sql);
  });
  await using serving = await serveApart(database, {
    STUDIO_SQL: "on",
    BASE_SCHEMA: "platform",
    MIGRATIONS_DIR: folder,
  });
  const compare = async () => {
    const response = await fetch(`${serving.url}/admin/v1/migrations/diff`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${tokenFor({ sub: "1", role: "admin" })}` },
      body: "{}",
    });
    return (await response.json()) as { readonly changes: readonly object[] };
  };
  const since = Date.now();
  const { changes } = await compare();
  expect(changes).toContainEqual(expect.objectContaining({ surface: "graphql", level: "breaking" }));
  expect(await serving.longestRun(since)).toBeLessThan(LONGEST_HOLD_MS);
  await rm(folder, { recursive: true });
});
