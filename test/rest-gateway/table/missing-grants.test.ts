import jwt from "jsonwebtoken";
import { describe, expect, test } from "vitest";
import { missingGrantHint } from "../../../rest-gateway/table/explain-error.ts";
import { catalog } from "../../planner/planner.ts";
import { SECRET } from "../../secret.ts";
import { useService } from "../../serve.ts";

const service = useService({
  sql: `create table public.todos (id bigint primary key, title text);
    grant select (id) on public.todos to admin, authenticated;
    create table public.steps (id bigint primary key, todo_id bigint references public.todos, text text);
    grant select (id, todo_id) on public.steps to authenticated;
    create table public.labels (id bigint primary key, owner_id bigint default 1, text text);
    grant select, insert (id, text), update (text), delete on public.labels to admin;
    create function public.purge(what int) returns int language sql as 'select 1';
    create function public.purge(what text) returns int language sql as 'select 2';
    revoke execute on all functions in schema public from public, anon, authenticated;
    insert into public.todos values (1, 'a'), (2, 'b');
    insert into public.steps values (1, 1, 'x'), (2, 1, 'y')`,
});

type Sent = { readonly body?: object; readonly prefer?: string };

async function refuse(role: string, method: string, path: string, { body = { id: 1 }, prefer = "" }: Sent = {}) {
  const token = jwt.sign({ role }, SECRET);
  const response = await fetch(`${service.url}/rest/v1/${path}`, {
    method,
    headers: { Authorization: `Bearer ${token}`, apikey: token, "Content-Type": "application/json", Prefer: prefer },
    ...(method === "GET" ? {} : { body: JSON.stringify(body) }),
  });
  expect(response.status).toBe(403);
  return (await response.json()) as Record<string, unknown>;
}

test("of several functions, those that the caller may not call have no part in an ambiguous call", async () => {
  const body = await refuse("authenticated", "POST", "rpc/purge", { body: { what: "a" } });
  expect(body).toMatchObject({ code: "42501", message: "permission denied for function purge" });
});

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

describe("a refused administrator who may write other columns is told which to leave out", () => {
  test.each<[method: string, path: string, sent: Sent, columns: string, privilege: string]>([
    ["POST", "labels", { body: { id: 1, owner_id: 2 } }, "owner_id", "insert"],
    ["POST", "labels?columns=id,owner_id", { body: [{ id: 1 }] }, "owner_id", "insert"],
    ["PATCH", "labels?id=eq.1", { body: { id: 2, owner_id: 2, text: "a" } }, "id, owner_id", "update"],
    ["POST", "labels", { body: { id: 1, owner_id: 2 }, prefer: "nested=insert" }, "owner_id", "insert"],
  ])("%s %s %o", async (method, path, sent, columns, privilege) => {
    const { message, hint } = await refuse("admin", method, path, sent);
    const names = columns.replaceAll(/\w+/g, '"$&"');
    expect({ message, hint }).toEqual({
      message: "permission denied for table labels",
      hint: `Leave out ${names}, or grant what the role lacks, as the owner: grant ${privilege} (${names}) on "public"."labels" to "admin";`,
    });
  });
});

test("a refused upsert is told the grant alone, since it finds the row by the column", async () => {
  const sent = { body: { id: 1, text: "a" }, prefer: "resolution=merge-duplicates" };
  const { hint } = await refuse("admin", "POST", "labels?on_conflict=id", sent);
  expect(hint).toBe('Grant what the role lacks, as the owner: grant update ("id") on "public"."labels" to "admin";');
});

test.each([
  ["todos?select=count", [{ count: 2 }]],
  ["todos?select=rows:count::text", [{ rows: "2" }]],
  [
    "todos?select=id,steps(count)&order=id",
    [
      { id: 1, steps: [{ count: 2 }] },
      { id: 2, steps: [{ count: 0 }] },
    ],
  ],
])("a role that may select some columns counts rows by %s", async (path, expected) => {
  const token = jwt.sign({ role: "authenticated" }, SECRET);
  const headers = { Authorization: `Bearer ${token}`, apikey: token };
  const response = await fetch(`${service.url}/rest/v1/${path}`, { headers });
  expect([response.status, await response.json()]).toEqual([200, expected]);
});

test("other callers of a database that is not the service's own get the error of PostgREST", async () => {
  expect(await refuse("authenticated", "GET", "todos")).toEqual({
    code: "42501",
    message: "permission denied for table todos",
    details: null,
    hint: null,
  });
});

const hintFor = (message: string) =>
  missingGrantHint(message, { role: "stranger", isAnonymous: true, intent: null }, catalog);

test("a refused caller without a sign-in is told to sign in, or the missing grant", () => {
  expect(hintFor("permission denied for table people")).toBe(
    'Sign in, or grant what the role lacks, as the owner: grant select on "api"."people" to "stranger";',
  );
});

test("a message about something else has no hint", () => {
  expect(hintFor("permission denied for sequence x")).toBeNull();
  expect(hintFor("permission denied for table nowhere")).toBeNull();
});
