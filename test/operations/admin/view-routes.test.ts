import jwt from "jsonwebtoken";
import { expect, test } from "vitest";
import { useClient, useDatabase } from "../../database.ts";
import { SECRET } from "../../secret.ts";
import { useService } from "../../serve.ts";

const database = useDatabase({
  template: "platform",
  sql: `create table public.films (id int primary key, title text);
    insert into auth.users (user_id, username) values (1, 'alice'), (2, 'bob');
    insert into auth.user_roles (user_id, role) values (1, 'admin'), (2, 'admin')`,
});
const service = useService({ database, settings: { STUDIO: "administrators", BASE_SCHEMA: "platform" } });
const owner = useClient(database.ownerUrl);

const FILMS = "/views/public/films";

type Sender = { readonly role?: string; readonly sub?: string };

async function send(method: string, path: string, body?: object, { role = "admin", sub }: Sender = {}) {
  // Without a time of issue, the token is not older than the account, which was made in the same second.
  const token = jwt.sign({ role, sub }, SECRET, { noTimestamp: true });
  const response = await fetch(`${service.url}/admin/v1${path}`, {
    method,
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, body: text === "" ? null : JSON.parse(text) };
}

const listed = async (sender: Sender) =>
  (await send("GET", FILMS, undefined, sender)).body.views.map((view: Record<string, unknown>) => [
    view.name,
    view.query,
    view.columns,
    view.saved_by,
    view.may_change,
  ]);

test("views of a table are shared, replaced by name, and deleted", async () => {
  expect((await send("GET", FILMS)).body).toEqual({ views: [] });
  const saved = await send("POST", FILMS, { name: " old / new ", query: "order=id.desc", columns: ["title", "id"] });
  expect(saved.body).toMatchObject({ name: "old / new", saved_by: null, may_change: true });
  await send("POST", FILMS, { name: "old / new" });
  await send("POST", FILMS, { name: "titles", query: "title=eq.x", columns: ["title"] });
  expect(await listed({})).toEqual([
    ["old / new", "", null, null, true],
    ["titles", "title=eq.x", ["title"], null, true],
  ]);
  expect((await send("GET", "/views/public/others")).body).toEqual({ views: [] });
  for (const name of ["old / new", "titles"]) {
    const path = `${FILMS}/${encodeURIComponent(name)}`;
    expect((await send("DELETE", path)).status).toBe(204);
    expect((await send("DELETE", path)).status).toBe(404);
  }
  expect(await listed({})).toEqual([]);
});

test("a view is changed and deleted by the administrator who saved it, and by all when that one is none any more", async () => {
  const [alice, bob] = [{ sub: "1" }, { sub: "2" }];
  expect((await send("POST", FILMS, { name: "hers", query: "id=gt.1" }, alice)).status).toBe(200);
  for (const other of [bob, {}]) {
    expect(await listed(other)).toEqual([["hers", "id=gt.1", null, "1", false]]);
    expect((await send("POST", FILMS, { name: "hers" }, other)).status).toBe(403);
    expect((await send("DELETE", `${FILMS}/hers`, undefined, other)).status).toBe(403);
  }
  expect(await listed(alice)).toEqual([["hers", "id=gt.1", null, "1", true]]);
  await owner.query("delete from auth.user_roles where user_id = 1");
  expect((await send("POST", FILMS, { name: "hers" }, bob)).status).toBe(200);
  expect(await listed(bob)).toEqual([["hers", "", null, "2", true]]);
  expect((await send("DELETE", `${FILMS}/hers`, undefined, bob)).status).toBe(204);
});

test.each([
  ["no name", { name: "  " }, 400],
  ["a name that is too long", { name: "n".repeat(201) }, 400],
  ["a query that is too long", { name: "n", query: "x".repeat(10_001) }, 400],
  ["columns that are no names", { name: "n", columns: [1] }, 400],
  ["a column whose name is too long", { name: "n", columns: ["x".repeat(64)] }, 400],
])("%s is refused", async (_, view, status) => {
  expect((await send("POST", FILMS, view)).status).toBe(status);
});

test("a view of a table that is missing is refused", async () => {
  expect((await send("POST", "/views/public/nowhere", { name: "n" })).status).toBe(404);
});

test("no more than 1,000 views are kept, of which each can be replaced", async () => {
  await owner.query(
    `insert into content_service.table_views (schema_name, table_name, name, query)
     select 'public', 'films', 'view ' || i, '' from generate_series(1, 1000) as i`,
  );
  expect((await send("POST", FILMS, { name: "another" })).status).toBe(400);
  expect((await send("POST", FILMS, { name: "view 7", query: "id=eq.7" })).status).toBe(200);
  await owner.query("delete from content_service.table_views");
  expect((await send("POST", FILMS, { name: "another" })).status).toBe(200);
  await owner.query("delete from content_service.table_views");
});

test("other callers neither read nor write them", async () => {
  for (const role of ["authenticated", "service_role"]) {
    expect((await send("GET", FILMS, undefined, { role })).status).toBe(403);
    expect((await send("POST", FILMS, { name: "n" }, { role })).status).toBe(403);
    expect((await send("DELETE", `${FILMS}/n`, undefined, { role })).status).toBe(403);
  }
});
