import { afterAll, expect, test } from "vitest";
import { withClient } from "../../../postgres/client/with-client.ts";
import { urlOf } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { serve } from "../../serve.ts";
import { until } from "../../until.ts";
import { openOperatedService } from "./operated-service.ts";

const operated = useFixture(() =>
  openOperatedService({ STUDIO_SQL: "on" }, "platform", async (owner) => {
    await owner.query("create table public.notes (id int); insert into public.notes values (1), (2)");
  }),
);
afterAll(async () => {
  for (const name of ["likes", "empty", "tenth", "slow", "wrong", "killed"])
    await rows("postgres", `drop database if exists ${operated.database.name}_branch_${name} with (force)`);
});

function rows(name: string, sql: string) {
  return withClient(urlOf("postgres", name), async (client) => (await client.query(sql)).rows);
}

const list = async () => (await operated.send("/admin/v1/branches", { token: operated.tokens.admin })).body;
const create = (body: object, headers: Record<string, string> = {}) =>
  operated.send("/admin/v1/branches", { token: operated.tokens.admin, body, headers });
const IN_BACKGROUND = { prefer: "respond-async" };
const find = async (name: string) => (await list()).branches.find((each: { name: string }) => each.name === name);
/** No rows are copied meanwhile. */
const holdRows = (work: () => Promise<void>) =>
  withClient(operated.database.ownerUrl, async (client) => {
    await client.query("begin; lock table public.notes in access exclusive mode");
    await work();
  });
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
  const complete = { bytes: expect.any(Number), sessions: 0, state: "complete", error: null, warnings: [] };
  expect(branches).toEqual([
    { ...complete, name: "empty", serve_command: "npm start -- --branch empty" },
    { ...complete, name: "likes", serve_command },
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

test("a branch can have a sample of the rows and other values in place of personal ones", async () => {
  await rows(
    operated.database.name,
    `create table public.people (id int primary key, email text);
     comment on column public.people.email is '@anonymize email';
     insert into public.people select n, n || '@example.org' from generate_series(1, 3000) n`,
  );
  const created = await create({ name: "tenth", sample: "10%", seed: 3, anonymize: true });
  expect([created.status, created.body.copy]).toEqual([201, "sampled"]);
  const people = await rows(`${operated.database.name}_branch_tenth`, "select email from public.people");
  expect(people.length).toBeGreaterThan(200);
  expect(people.length).toBeLessThan(400);
  expect(people.filter(({ email }) => !email.endsWith("@example.invalid"))).toEqual([]);
  const [event] = (await operated.events()).filter(({ details }) => details.name === "tenth");
  expect(event!.details).toMatchObject({ schema_only: false, sample: 0.1, seed: 3, anonymize: true });
});

test("options that do not belong together are refused with the words of the command", async () => {
  for (const [options, message] of [
    [{ sample: "0%" }, "A sample is a percentage above 0, such as 0.5%."],
    [{ sample: "1" }, "A sample is a percentage above 0, such as 0.5%."],
    [{ seed: 1 }, "A seed belongs to a sample."],
    [{ sample: "1%", seed: -1 }, "A seed is a number of at most nine digits."],
    [{ sample: "1%", schema_only: true }, "A branch without rows has none to choose or anonymize."],
    [{ anonymize: true, schema_only: true }, "A branch without rows has none to choose or anonymize."],
  ] as const)
    expect(await create({ name: "other", ...options })).toMatchObject({ status: 400, body: { error: { message } } });
  await operated.owner.query("comment on column public.people.email is '@anonymize hashed'");
  expect(await create({ name: "other", anonymize: true }, IN_BACKGROUND)).toMatchObject({
    status: 409,
    body: { error: { message: expect.stringContaining("nothing was copied") } },
  });
  await operated.owner.query("comment on column public.people.email is '@anonymize email'");
  expect(await find("other")).toBeUndefined();
});

test("in the background, the list says when it is complete, and meanwhile it is not dropped", async () => {
  await holdRows(async () => {
    const accepted = await create({ name: "slow", sample: "50%" }, IN_BACKGROUND);
    expect([accepted.status, accepted.headers["preference-applied"], accepted.body]).toEqual([
      202,
      "respond-async",
      { name: "slow", state: "being copied", serve_command: "npm start -- --branch slow" },
    ]);
    expect(await find("slow")).toMatchObject({ state: "being copied", error: null });
    expect((await create({ name: "slow" }, IN_BACKGROUND)).status).toBe(409);
    expect(await drop("slow")).toMatchObject({
      status: 409,
      body: { error: { message: 'The branch "slow" is being copied. Drop it when it is complete.' } },
    });
  });
  await until(async () => (await find("slow")).state === "complete");
  expect(await rows(`${operated.database.name}_branch_slow`, "select id from public.notes")).toHaveLength(2);
});

test("one that fails in the background stays in the list with the reason, without rows", async () => {
  await operated.owner.query("comment on table public.people is '@sample some'");
  const refused = await create({ name: "wrong", sample: "1%" });
  expect([refused.status, await find("wrong")]).toEqual([409, undefined]);
  expect((await create({ name: "wrong", sample: "1%" }, IN_BACKGROUND)).status).toBe(202);
  await until(async () => (await find("wrong")).state === "failed");
  expect((await find("wrong")).error).toContain('"public"."people" has a tag @sample that cannot be read');
  expect(operated.logged()).toContain("a branch was not created");
  expect(await rows(`${operated.database.name}_branch_wrong`, "select to_regclass('public.notes') as notes")).toEqual([
    { notes: null },
  ]);
  await operated.owner.query("comment on table public.people is null");
  expect((await drop("wrong")).status).toBe(204);
});

test("one whose copying ended without a result is interrupted, and can be dropped", async () => {
  await holdRows(async () => {
    expect((await create({ name: "killed", sample: "1%" }, IN_BACKGROUND)).status).toBe(202);
    const claim =
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'branch killed of ' || (select oid from pg_database where datname = $1)";
    expect((await operated.owner.query(claim, [operated.database.name])).rowCount).toBe(1);
    await until(async () => (await find("killed")).state === "interrupted");
  });
  await until(async () => (await drop("killed")).status === 204);
});

const BRANCHES = [{ name: "likes" }, { name: "slow" }, { name: "tenth" }];
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
    expect(await (await call("GET", "")).json()).toMatchObject({ served: "likes", branches: BRANCHES });
    expect((await call("POST", "", { name: "empty", schema_only: true })).status).toBe(201);
    expect((await list()).branches.map(({ name }: { name: string }) => name)).toEqual([
      "empty",
      ...BRANCHES.map(({ name }) => name),
    ]);
    expect((await call("DELETE", "/empty")).status).toBe(204);
    expect((await call("DELETE", "/likes")).status).toBe(409);
  } finally {
    await service.stop();
  }
});

test("with STUDIO_SQL=false branches are only listed", async () => {
  const off = await openOperatedService({ STUDIO_SQL: "off" }, "platform");
  try {
    const token = off.tokens.admin;
    const listed = await off.send("/admin/v1/branches", { token });
    expect([listed.status, listed.body.refusal.how]).toEqual([200, "Set STUDIO_SQL=true."]);
    expect((await off.send("/admin/v1/branches", { token, body: { name: "likes" } })).status).toBe(403);
    expect((await off.send("/admin/v1/branches/likes", { token, method: "DELETE" })).status).toBe(403);
  } finally {
    await off.close();
  }
});
