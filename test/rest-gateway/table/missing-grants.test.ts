import jwt from "jsonwebtoken";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { missingGrantHint } from "../../../rest-gateway/table/explain-error.ts";
import type { Service } from "../../../service/service.ts";
import { cloneDatabase, type TestDatabase } from "../../database.ts";
import { connect } from "../../db/callers.ts";
import { catalog } from "../../planner/planner.ts";
import { SECRET } from "../../secret.ts";
import { serve } from "../../serve.ts";

let database: TestDatabase;
let service: Service;
beforeAll(async () => {
  database = await cloneDatabase("content");
  const owner = await connect(database.ownerUrl);
  await owner.query(`create table public.todos (id bigint primary key, title text);
    grant select (id) on public.todos to admin, authenticated`);
  await owner.end();
  service = await serve(database);
});
afterAll(async () => {
  await service.stop();
  await database.drop();
});

async function refuse(role: string, method: string, path: string): Promise<Record<string, unknown>> {
  const token = jwt.sign({ role }, SECRET);
  const response = await fetch(`${service.url}/rest/v1/${path}`, {
    method,
    headers: { Authorization: `Bearer ${token}`, apikey: token, "Content-Type": "application/json" },
    ...(method === "GET" ? {} : { body: '{"id": 1}' }),
  });
  expect(response.status).toBe(403);
  return (await response.json()) as Record<string, unknown>;
}

describe("a refused administrator is told the missing grant", () => {
  test.each([
    ["GET", "todos", 'grant select ("title") on "public"."todos" to "admin";'],
    ["POST", "todos", 'grant insert on "public"."todos" to "admin";'],
    ["PATCH", "todos?id=eq.1", 'grant update on "public"."todos" to "admin";'],
    ["DELETE", "todos?id=eq.1", 'grant delete on "public"."todos" to "admin";'],
  ])("%s %s", async (method, path, grant) => {
    const body = await refuse("admin", method, path);
    expect(body).toMatchObject({ code: "42501", message: "permission denied for table todos", details: null });
    expect(body.hint).toBe(`Grant what the role lacks, as the owner: ${grant}`);
  });
});

test("other callers of a database that is not the service's own get the error of PostgREST", async () => {
  expect(await refuse("authenticated", "GET", "todos")).toEqual({
    code: "42501",
    message: "permission denied for table todos",
    details: null,
    hint: null,
  });
});

test("a message about something else has no hint", () => {
  expect(missingGrantHint("permission denied for sequence x", { role: "anon", intent: null }, catalog)).toBeNull();
  expect(missingGrantHint("permission denied for table nowhere", { role: "anon", intent: null }, catalog)).toBeNull();
});
