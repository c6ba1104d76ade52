import pg from "pg";
import { describe, expect, test } from "vitest";
import { shareOf } from "../../../property-runs.ts";
import { makeSupabaseProject } from "../../../supabase-template.ts";
import { ACCESS } from "./shapes/access.ts";
import { APPLICATIONS } from "./shapes/applications.ts";
import { DUMPS } from "./shapes/dumps.ts";
import { EXTENSIONS } from "./shapes/extensions.ts";
import { ROLES } from "./shapes/roles.ts";
import { SCHEMAS } from "./shapes/schemas.ts";
import { SERVICES } from "./shapes/services.ts";
import { SESSION_SHAPES } from "./shapes/sessions.ts";
import type { Shape, ShapeCheck } from "./shapes/shape.ts";
import { STARTERS } from "./shapes/starters.ts";
import { TOOLS } from "./shapes/tools.ts";

/** Runs the statement as the caller, and rolls it back. */
async function runCheck(client: pg.Client, { as, claims = {}, sql, rows, error }: ShapeCheck): Promise<void> {
  const isUser = /^[0-9a-f-]{36}$/.test(as);
  const role = isUser ? "authenticated" : as;
  await client.query("begin");
  try {
    const jwt = { role, ...(isUser ? { sub: as } : {}), ...claims };
    await client.query("select set_config('request.jwt.claims', $1, true)", [JSON.stringify(jwt)]);
    if (role !== "owner") await client.query(`set local role ${role}`);
    const result = client.query({ text: sql, rowMode: "array" });
    if (error !== undefined) return await expect(result, sql).rejects.toMatchObject({ code: error });
    const found = (await result).rows;
    if (rows !== undefined) expect(found, sql).toEqual(rows);
  } finally {
    await client.query("rollback");
  }
}

const KINDS: readonly (readonly Shape[])[] = [
  STARTERS,
  ACCESS,
  EXTENSIONS,
  DUMPS,
  APPLICATIONS,
  SERVICES,
  SCHEMAS,
  SESSION_SHAPES,
  ROLES,
  TOOLS,
];

describe("shapes of public Supabase projects", () => {
  test("are at least forty", () => {
    expect(new Set(KINDS.flat().map(({ name }) => name)).size).toBeGreaterThanOrEqual(40);
  });

  test.each(KINDS.flatMap((shapes) => shareOf(shapes, 2)))("$name", async ({ files, checks, changes = [] }) => {
    const project = await makeSupabaseProject(files);
    const client = new pg.Client({ connectionString: project.database.ownerUrl });
    try {
      await client.connect();
      for (const check of checks) await runCheck(client, check);
      for (const change of changes) expect(project.changes.join("\n")).toContain(change);
    } finally {
      await client.end();
      await project.database.drop();
    }
  });
});

test("a project drops its own schemas; the refusal to drop one of the service names it", async () => {
  const { database } = await makeSupabaseProject({
    "migrations/20240101000000_own.sql": 'create schema "Own ""one"".";',
  });
  const client = new pg.Client({ connectionString: database.ownerUrl });
  try {
    await client.connect();
    await client.query('drop schema "Own ""one""."');
    const refused = { code: "42501", message: "Schema storage belongs to the service" };
    await expect(client.query("drop schema storage cascade")).rejects.toMatchObject(refused);
    const { rows } = await client.query("select to_regclass('storage.objects') is not null as kept");
    expect(rows).toEqual([{ kept: true }]);
  } finally {
    await client.end();
    await database.drop();
  }
});
