import { afterAll, beforeAll, expect, test } from "vitest";
import { withClient } from "../../../postgres/client/with-client.ts";
import { urlOf } from "../../database.ts";
import { serve } from "../../serve.ts";
import { type OperatedService, openOperatedService } from "./operated-service.ts";

let operated: OperatedService;
beforeAll(async () => {
  operated = await openOperatedService({ STUDIO_SQL: "on" }, "platform", async (owner) => {
    await owner.query("create table public.notes (id int); insert into public.notes values (1), (2)");
  });
});
afterAll(async () => {
  for (const name of ["likes", "empty"])
    await rows("postgres", `drop database if exists ${operated.database.name}_branch_${name} with (force)`);
  await operated.close();
});

function rows(name: string, sql: string) {
  return withClient(urlOf("postgres", name), async (client) => (await client.query(sql)).rows);
}

const list = async () => (await operated.send("/admin/v1/branches", { token: operated.tokens.admin })).body;
const create = (body: object) => operated.send("/admin/v1/branches", { token: operated.tokens.admin, body });
const drop = (name: string) =>
  operated.send(`/admin/v1/branches/${name}`, { method: "DELETE", token: operated.tokens.admin });

test("branches are created with rows or without, listed with their size, and dropped", async () => {
  expect(await list()).toEqual({
    refusal: null,
    served: null,
    create_command: "npm run branch -- create NAME",
    branches: [],
  });
  const serve_command = "npm start -- --branch likes";
  expect(await create({ name: "likes" })).toMatchObject({
    status: 201,
    body: { name: "likes", copy: expect.any(String), warnings: [], serve_command },
  });
  expect((await create({ name: "empty", schema_only: true })).body).toMatchObject({ copy: "without rows" });
  const count = "select count(*)::int as count from public.notes";
  const { name } = operated.database;
  expect(await rows(`${name}_branch_likes`, count)).toEqual([{ count: 2 }]);
  expect(await rows(`${name}_branch_empty`, count)).toEqual([{ count: 0 }]);
  const { branches } = await list();
  expect(branches).toEqual([
    { name: "empty", bytes: expect.any(Number), sessions: 0, serve_command: "npm start -- --branch empty" },
    { name: "likes", bytes: expect.any(Number), sessions: 0, serve_command },
  ]);
  expect((await drop("empty")).status).toBe(204);
  expect((await list()).branches).toHaveLength(1);
  const events = (await operated.events()).filter(({ event }) => event.startsWith("studio.branch_"));
  expect(events.map(({ event, details }) => [event, details.name])).toEqual([
    ["studio.branch_created", "likes"],
    ["studio.branch_created", "empty"],
    ["studio.branch_dropped", "empty"],
  ]);
});

test("a branch that exists is not created again, one that is used is not dropped, and names are checked", async () => {
  expect(await create({ name: "likes" })).toMatchObject({ status: 409, body: { error: { code: "STATE_CONFLICT" } } });
  for (const name of ["Likes", "", 'a"b', "x".repeat(31)]) expect((await create({ name })).status).toBe(400);
  await withClient(urlOf("postgres", `${operated.database.name}_branch_likes`), async () => {
    const refused = await drop("likes");
    expect(refused).toMatchObject({ status: 409, body: { error: { message: expect.stringContaining("is used by") } } });
  });
  expect((await drop("unknown")).status).toBe(404);
});

test("on a branch, branches are those of the database", async () => {
  const service = await serve(operated.database, {
    STUDIO_SQL: "on",
    BASE_SCHEMA: "platform",
    DATABASE_BRANCH: "likes",
  });
  try {
    const headers = { authorization: `Bearer ${operated.tokens.admin}`, "content-type": "application/json" };
    const call = (method: string, path: string, body?: object) =>
      fetch(`${service.url}/admin/v1/branches${path}`, {
        method,
        headers,
        ...(body && { body: JSON.stringify(body) }),
      });
    expect(await (await call("GET", "")).json()).toMatchObject({ served: "likes", branches: [{ name: "likes" }] });
    expect((await call("POST", "", { name: "empty", schema_only: true })).status).toBe(201);
    expect((await list()).branches.map(({ name }: { name: string }) => name)).toEqual(["empty", "likes"]);
    expect((await call("DELETE", "/empty")).status).toBe(204);
    expect((await call("DELETE", "/likes")).status).toBe(409);
  } finally {
    await service.stop();
  }
});

test("with STUDIO_SQL=off branches are only listed", async () => {
  const off = await openOperatedService({ STUDIO_SQL: "off" }, "platform");
  try {
    const token = off.tokens.admin;
    const listed = await off.send("/admin/v1/branches", { token });
    expect([listed.status, listed.body.refusal.how]).toEqual([200, "Set STUDIO_SQL=on."]);
    expect((await off.send("/admin/v1/branches", { token, body: { name: "likes" } })).status).toBe(403);
    expect((await off.send("/admin/v1/branches/likes", { token, method: "DELETE" })).status).toBe(403);
  } finally {
    await off.close();
  }
});
