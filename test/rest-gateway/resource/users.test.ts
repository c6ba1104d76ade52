import { beforeAll, describe, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { until } from "../../until.ts";
import { openResources, type Resources } from "./open-resources.ts";

let ask: Resources["ask"];

const resources = useFixture(openResources);
beforeAll(async () => {
  ask = resources.ask;
  const people = Array.from({ length: 25 }, (_, index) => `('Person ${index + 1}', 'person-${index + 1}@example.org')`);
  await resources.owner.query(`insert into users (name, email) values ${people}`);
});

const ISO = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$/;
let made = 0;
const newEmail = () => `new-${++made}@example.org`;
const codeOf = ({ status, body }: { status: number; body: { error: { code: string } } }) => [status, body.error.code];

describe("listing users", () => {
  test("the first ten are a plain array, in the order of their ids", async () => {
    const { status, body } = await ask("/users");
    expect(status).toBe(200);
    expect(body.map(({ name }: { name: string }) => name)).toEqual(
      Array.from({ length: 10 }, (_, index) => `Person ${index + 1}`),
    );
  });

  test("a user has the documented fields and no other", async () => {
    const { body } = await ask("/users?limit=1");
    expect(Object.keys(body[0])).toEqual(["id", "name", "email", "age", "created_at", "updated_at"]);
    expect(body[0]).toMatchObject({ id: 1, age: null });
    expect(body[0].created_at).toMatch(ISO);
  });

  test("skip and limit select a range", async () => {
    const { body } = await ask("/users?skip=20&limit=3");
    expect(body.map(({ name }: { name: string }) => name)).toEqual(["Person 21", "Person 22", "Person 23"]);
  });

  test("limit=0 returns no rows, and a limit above the maximum page size is reduced to it", async () => {
    expect((await ask("/users?limit=0")).body).toEqual([]);
    expect((await ask("/users?limit=100000")).body.length).toBeGreaterThanOrEqual(25);
  });

  test("page with limit returns the envelope, counted from 1", async () => {
    const { body } = await ask("/users?page=2&limit=10&name=Person%202&name=Person%203");
    expect(body).toMatchObject({ data: [], pagination: { page: 2, limit: 10, total: 2, totalPages: 1 } });
    const whole = (await ask("/users?page=2&limit=5&sort=id")).body;
    expect(whole.data.map(({ id }: { id: number }) => id)).toEqual([6, 7, 8, 9, 10]);
    expect(whole.pagination.totalPages).toBe(Math.ceil(whole.pagination.total / 5));
    expect(Object.keys(whole.links)).toEqual(["first", "prev", "next", "last"]);
    const next = await ask(whole.links.next);
    expect(next.body.data.map(({ id }: { id: number }) => id)).toEqual([11, 12, 13, 14, 15]);
    const first = await ask(whole.links.first);
    expect(first.body.links.prev).toBeNull();
    expect((await ask(whole.links.last)).body.links.next).toBeNull();
  });

  test("page alone returns the envelope with the documented limit", async () => {
    expect((await ask("/users?page=1")).body.pagination).toMatchObject({ page: 1, limit: 10 });
  });

  test("size returns a page object, counted from 0", async () => {
    const { body } = await ask("/users?page=1&size=10&sort=id");
    expect(body).toMatchObject({ page: 1, size: 10, first: false });
    expect(body.content[0].id).toBe(11);
    expect(body.totalPages).toBe(Math.ceil(body.totalElements / 10));
    expect((await ask("/users?size=10")).body).toMatchObject({ page: 0, first: true, last: false });
    expect((await ask("/users?size=500")).body).toMatchObject({ first: true, last: true });
  });

  test("envelope=true returns skip, limit and total", async () => {
    const { body } = await ask("/users?skip=1&limit=2&envelope=true");
    expect(body.data.map(({ id }: { id: number }) => id)).toEqual([2, 3]);
    expect(body.pagination).toMatchObject({ skip: 1, limit: 2, total: expect.any(Number) });
  });

  test.each([
    "skip=-1",
    "skip=one",
    "limit=-5",
    "limit=1.5",
    "page=0",
    "page=x",
    "size=-1",
    "limit=5&size=5",
    "skip=1&page=2",
    "envelope=maybe",
    "limit=1&limit=2",
    "page=99999999999999999999",
  ])("%s is refused", async (query) => {
    expect(codeOf(await ask(`/users?${query}`))).toEqual([400, "VALIDATION_ERROR"]);
  });

  test("an unknown name is reported, with a similar one", async () => {
    const filter = await ask("/users?emial=x");
    expect(codeOf(filter)).toEqual([400, "VALIDATION_ERROR"]);
    expect(filter.body.error.details).toEqual([{ field: "emial", message: expect.stringContaining('"email"') }]);
    expect((await ask("/users?sort=nmae:desc")).body.error.message).toContain('"name"');
    expect((await ask("/users?fields=id,agee")).body.error.message).toContain('"age"');
    expect((await ask("/users?sort=name:up")).status).toBe(400);
    expect((await ask("/users?age=old")).body.error.details).toEqual([{ field: "age", message: expect.any(String) }]);
  });

  test("any field can be filtered, sorted and selected", async () => {
    const { body } = await ask("/users?name=Person%207&name=Person%208&sort=name:desc&fields=name,id");
    expect(body).toEqual([
      { id: 8, name: "Person 8" },
      { id: 7, name: "Person 7" },
    ]);
    expect((await ask("/users?sort=name&order=desc&limit=1")).body[0].name).toBe("Person 9");
    expect((await ask("/users?keyword=PERSON-1&fields=name&limit=3")).body.length).toBe(3);
    expect((await ask("/users?keyword=%25")).body).toEqual([]);
    expect((await ask("/users?id=99999999999999999999")).body).toEqual([]);
  });
});

describe("an error says what to do", () => {
  test.each([
    ["/users?created_at=2020", "This must be a date and time such as 2026-01-31T12:00:00Z."],
    ["/users?version=9", 'Version "9" is not supported. Supported versions: 1, 2.'],
    ["/users/x", "The id is not valid: id must be a whole number."],
    ["/users/999999", "User not found."],
    ["/api/v1/articles/999999", "Not found: no such row in articles."],
  ])("%s: %s", async (path, message) => {
    expect((await ask(path)).body.error.message).toBe(message);
  });

  test("and the invalid value is named", async () => {
    const { body } = await ask("/users?created_at=2020");
    expect(body.error.details).toEqual([
      { field: "created_at", message: "This must be a date and time such as 2026-01-31T12:00:00Z." },
    ]);
  });
});

describe("one user", () => {
  test("is read by its id", async () => {
    expect((await ask("/users/3")).body).toMatchObject({ id: 3, name: "Person 3" });
  });

  test.each(["GET", "PUT", "PATCH", "DELETE"])("%s of an unknown id is 404 USER_NOT_FOUND", async (method) => {
    const body = method === "PUT" || method === "PATCH" ? { name: "Ada", email: "ada@example.org" } : undefined;
    expect(codeOf(await ask("/users/999999", { method, body }))).toEqual([404, "USER_NOT_FOUND"]);
    expect(codeOf(await ask("/users/99999999999999999999", { method, body }))).toEqual([404, "USER_NOT_FOUND"]);
  });

  test.each(["abc", "1.5", "1;drop", "%27", "%00", "1e3"])("the id %s is 400 INVALID_ID", async (id) => {
    expect(codeOf(await ask(`/users/${id}`))).toEqual([400, "INVALID_ID"]);
  });
});

describe("creating", () => {
  test("returns 201, the user and its location", async () => {
    const email = newEmail();
    const { status, headers, body } = await ask("/users", { method: "POST", body: { name: "Ada", email, age: 36 } });
    expect(status).toBe(201);
    expect(body).toMatchObject({ name: "Ada", email, age: 36 });
    expect(body.created_at).toBe(body.updated_at);
    expect(headers.get("location")).toBe(`/users/${body.id}`);
    expect((await ask(headers.get("location")!)).body).toEqual(body);
  });

  test("ids are assigned, and read-only fields are ignored", async () => {
    const sent = { id: 7_000_000, created_at: "1999-01-01T00:00:00Z", name: "Eve", email: newEmail() };
    const { status, body } = await ask("/users", { method: "POST", body: sent });
    expect(status).toBe(201);
    expect(body.id).toBeLessThan(7_000_000);
    expect(body.created_at).not.toContain("1999");
  });

  test.each([
    [{ email: "x@example.org" }, "MISSING_FIELD", "name"],
    [{ name: "Ada" }, "MISSING_FIELD", "email"],
    [{ name: null, email: "x@example.org" }, "MISSING_FIELD", "name"],
    [{ name: "Ada", email: "no address" }, "VALIDATION_ERROR", "email"],
    [{ name: " ", email: "y@example.org" }, "VALIDATION_ERROR", "name"],
    [{ name: "Ada", email: "z@example.org", age: -1 }, "VALIDATION_ERROR", "age"],
    [{ name: "Ada", email: "z@example.org", age: "old" }, "VALIDATION_ERROR", "age"],
    [{ name: "Ada", email: "z@example.org", age: 1.5 }, "VALIDATION_ERROR", "age"],
    [{ name: "Ada", email: "z@example.org", age: 99999999999 }, "VALIDATION_ERROR", "age"],
    [{ name: 5, email: "z@example.org" }, "VALIDATION_ERROR", "name"],
    [{ name: "Ada", email: "z@example.org", role: "admin" }, "VALIDATION_ERROR", "role"],
  ])("%j is 400 %s, naming %s", async (body, code, field) => {
    const response = await ask("/users", { method: "POST", body });
    expect(codeOf(response)).toEqual([400, code]);
    expect(response.body.error.details).toContainEqual({ field, message: expect.any(String) });
  });

  test.each([
    ["30.0", 30],
    ["3e1", 30],
    ["-0.0", 0],
  ])("the age %s is the integer that JSON parses it as", async (age, whole) => {
    const body = `{"name": "Ada", "email": "${newEmail()}", "age": ${age}}`;
    const response = await ask("/users", { method: "POST", body });
    expect([response.status, response.body.age]).toEqual([201, whole]);
  });

  test.each(["30.5", "30.00000000000000000001", "1e400"])("the age %s is not an integer", async (age) => {
    const body = `{"name": "Ada", "email": "${newEmail()}", "age": ${age}}`;
    expect(codeOf(await ask("/users", { method: "POST", body }))).toEqual([400, "VALIDATION_ERROR"]);
  });

  test.each(["{", "", "{'name': 'Ada'}", '{"name": "Ada"', "\u0000"])("%j is 400 INVALID_JSON", async (body) => {
    expect(codeOf(await ask("/users", { method: "POST", body }))).toEqual([400, "INVALID_JSON"]);
  });

  test("the error for a body that is nested too deeply names the depth, and does not call it invalid JSON", async () => {
    const deep = 100_000;
    const body = `{"name": ${"[".repeat(deep)}${"]".repeat(deep)}}`;
    const response = await ask("/users", { method: "POST", body });
    expect([...codeOf(response), response.body.error.message]).toEqual([
      400,
      "VALIDATION_ERROR",
      "The body is nested too deeply.",
    ]);
  });

  test("a taken e-mail address is 409 RESOURCE_CONFLICT, whatever its case", async () => {
    const email = newEmail();
    await ask("/users", { method: "POST", body: { name: "Ada", email } });
    for (const again of [email, email.toUpperCase()]) {
      const response = await ask("/users", { method: "POST", body: { name: "Eve", email: again } });
      expect(codeOf(response)).toEqual([409, "RESOURCE_CONFLICT"]);
      expect(response.body.error.details).toEqual([{ field: "email", message: response.body.error.message }]);
    }
  });

  test("another type than JSON is 415, and a body that is too large 413", async () => {
    const form = await ask("/users", {
      method: "POST",
      headers: { "Content-Type": "application/x-www-form-urlencoded" },
      body: "name=Ada",
    });
    expect([form.status, form.headers.get("accept")]).toEqual([415, "application/json"]);
    expect((await ask("/users", { method: "POST", body: { name: "x".repeat(11_000_000) } })).status).toBe(413);
  });
});

describe("changing", () => {
  const create = async (fields: object = {}) =>
    (await ask("/users", { method: "POST", body: { name: "Ada", email: newEmail(), age: 36, ...fields } })).body;

  test("PUT replaces: a missing nullable field becomes null", async () => {
    const before = await create();
    const email = newEmail();
    const { status, body } = await ask(`/users/${before.id}`, { method: "PUT", body: { name: "Eve", email } });
    expect(status).toBe(200);
    expect(body).toMatchObject({ id: before.id, name: "Eve", email, age: null, created_at: before.created_at });
    expect(Date.parse(body.updated_at)).toBeGreaterThan(Date.parse(before.updated_at));
  });

  test("PUT keeps fields that version 1 does not have", async () => {
    const { id, email } = await create();
    await resources.owner.query("update users set avatar = 'https://example.org/a.png' where id = $1", [id]);
    await ask(`/users/${id}`, { method: "PUT", body: { name: "Eve", email } });
    expect((await ask(`/api/v2/users/${id}`)).body.avatar).toBe("https://example.org/a.png");
  });

  test("PUT without name or email is 400 MISSING_FIELD", async () => {
    const { id } = await create();
    expect(codeOf(await ask(`/users/${id}`, { method: "PUT", body: { name: "Eve" } }))).toEqual([400, "MISSING_FIELD"]);
    expect(codeOf(await ask(`/users/${id}`, { method: "PUT", body: { age: 3 } }))).toEqual([400, "MISSING_FIELD"]);
  });

  test("a user that was read can be written back unchanged", async () => {
    const before = await create();
    const { status, body } = await ask(`/users/${before.id}`, { method: "PUT", body: before });
    expect([status, body]).toEqual([200, { ...before, updated_at: body.updated_at }]);
  });

  test("PATCH changes the fields in the body only", async () => {
    const before = await create();
    const { status, body } = await ask(`/users/${before.id}`, { method: "PATCH", body: { age: 37 } });
    expect([status, body]).toEqual([200, { ...before, age: 37, updated_at: body.updated_at }]);
    expect(Date.parse(body.updated_at)).toBeGreaterThan(Date.parse(before.updated_at));
    expect((await ask(`/users/${before.id}`, { method: "PATCH", body: { age: null } })).body.age).toBeNull();
    expect((await ask(`/users/${before.id}`, { method: "PATCH", body: {} })).status).toBe(200);
  });

  test("PATCH is refused like a creation", async () => {
    const { id } = await create();
    const { email } = await create();
    const patch = (body: unknown) => ask(`/users/${id}`, { method: "PATCH", body });
    expect(codeOf(await patch({ email: "nothing" }))).toEqual([400, "VALIDATION_ERROR"]);
    expect(codeOf(await patch({ name: null }))).toEqual([400, "MISSING_FIELD"]);
    expect(codeOf(await patch({ email }))).toEqual([409, "RESOURCE_CONFLICT"]);
    expect(codeOf(await patch("{"))).toEqual([400, "INVALID_JSON"]);
    expect(codeOf(await patch("[]"))).toEqual([400, "VALIDATION_ERROR"]);
  });

  test("DELETE returns 204 without a body, and deletes articles and comments too", async () => {
    const { id } = await create();
    await resources.owner.query("insert into articles (title, content, author_id) values ('A title', '', $1)", [id]);
    const { status, text } = await ask(`/users/${id}`, { method: "DELETE" });
    expect([status, text]).toEqual([204, ""]);
    expect((await ask(`/users/${id}`)).status).toBe(404);
    expect((await ask(`/api/v1/articles?author=${id}`)).body.data).toEqual([]);
  });
});

describe("/api/v1/users", () => {
  test("responds as /users does", async () => {
    for (const path of ["", "/1", "/999999", "/x", "?page=1&limit=2&fields=id", "?size=2&fields=id", "?nmae=1"]) {
      const [here, there] = [await ask(`/users${path}`), await ask(`/api/v1/users${path}`)];
      expect(there.status).toBe(here.status);
      const { error, links, ...rest } = there.body ?? {};
      if (error) expect(error.code).toBe(here.body.error.code);
      else if (links) expect(rest).toEqual({ data: here.body.data, pagination: here.body.pagination });
      else expect(there.body).toEqual(here.body);
    }
    const { status, headers, body } = await ask("/api/v1/users", {
      method: "POST",
      body: { name: "Ada", email: newEmail() },
    });
    expect([status, headers.get("location")]).toEqual([201, `/api/v1/users/${body.id}`]);
  });
});

test("PUT_SEMANTICS=merge keeps missing fields", async () => {
  const merging = await openResources({ settings: { PUT_SEMANTICS: "merge" } });
  try {
    const body = { name: "Ada", email: "ada@example.org", age: 36 };
    const { id } = (await merging.ask("/users", { method: "POST", body })).body;
    const response = await merging.ask(`/users/${id}`, { method: "PUT", body: { name: "Eve" } });
    expect([response.status, response.body]).toMatchObject([200, { name: "Eve", email: "ada@example.org", age: 36 }]);
  } finally {
    await merging.close();
  }
});

test.each([
  ["detail", { detail: { code: "USER_NOT_FOUND", message: expect.any(String) } }],
  ["flat", { error: "USER_NOT_FOUND", message: expect.any(String), field: null }],
  [
    "spring",
    {
      timestamp: expect.stringMatching(ISO),
      status: 404,
      error: { code: "USER_NOT_FOUND", message: expect.any(String), fields: {} },
    },
  ],
])("ERROR_BODY=%s selects that format", async (shape, expected) => {
  const shaped = await openResources({ settings: { ERROR_BODY: shape } });
  try {
    expect((await shaped.ask("/users/5")).body).toEqual(expected);
  } finally {
    await shaped.close();
  }
});

test("the ETag of selected fields differs from that of the whole user", async () => {
  const id = await resources.addUser("Whole");
  const headers = { "Content-Range": "bytes 0-9/100" };
  const sent = { method: "PUT", headers, body: { name: "Part", email: `part-${id}@example.org` } };
  expect(codeOf(await ask(`/users/${id}`, sent))).toEqual([400, "VALIDATION_ERROR"]);
  expect((await ask(`/users/${id}`)).body.name).toBe("Whole");
});

describe("USERS_ACCESS=owner", () => {
  const closed = useFixture(() =>
    openResources({
      settings: { USERS_ACCESS: "owner", PUBLIC_URL: "https://api.example.org/content/" },
    }),
  );

  test("users and administrators change and delete users; any caller may create one", async () => {
    const [ada, eve] = [await closed.addUser(), await closed.addUser()];
    const patch = (as?: number | { role: string; sub: string }) =>
      closed.ask(`/users/${ada}`, { method: "PATCH", body: { age: 40 }, ...(as !== undefined && { as }) });
    const anonymous = await patch();
    expect(codeOf(anonymous)).toEqual([401, "AUTH_REQUIRED"]);
    expect(anonymous.headers.get("www-authenticate")).toBe("Bearer");
    expect(codeOf(await patch(eve))).toEqual([403, "PERMISSION_DENIED"]);
    expect((await patch(ada)).status).toBe(200);
    expect((await patch({ role: "admin", sub: String(eve) })).status).toBe(200);
    expect(codeOf(await closed.ask(`/users/${ada}`, { method: "DELETE", as: eve }))).toEqual([
      403,
      "PERMISSION_DENIED",
    ]);
    expect((await closed.ask("/users/999999", { method: "DELETE", as: eve })).status).toBe(404);
    expect((await closed.ask(`/users/${ada}`, { method: "DELETE", as: ada })).status).toBe(204);
    const anybody = { name: "New", email: "new@example.org" };
    expect((await closed.ask("/users", { method: "POST", body: anybody })).status).toBe(201);
  });

  test("links start with PUBLIC_URL", async () => {
    await closed.addUser();
    const { body } = await closed.ask("/users?page=1&limit=1&links=true", { as: 1 });
    expect(body.links.first).toBe("https://api.example.org/content/users?page=1&limit=1&links=true");
    expect(body.data[0]._links.self.href).toBe(`https://api.example.org/content/users/${body.data[0].id}`);
  });

  test("links in headers begin with the path of PUBLIC_URL", async () => {
    const made = await closed.ask("/users", { method: "POST", body: { name: "Eve", email: "eve@example.org" } });
    expect(made.headers.get("location")).toBe(`/content/users/${made.body.id}`);
    const moved = await closed.ask("/api/v1/Articles/?limit=1");
    expect([moved.status, moved.headers.get("location")]).toEqual([301, "/content/api/v1/articles?limit=1"]);
    await closed.owner.query("update api.versions set status = 'deprecated', successor = 2 where number = 1");
    const next = async () => (await closed.ask("/users", { as: 1 })).headers.get("link");
    await until(async () => (await next()) === "</content/api/v2/users>; rel=successor-version");
    await closed.owner.query("update api.versions set status = 'retired' where number = 1");
    await until(async () => (await closed.ask("/users", { as: 1 })).status === 410);
    expect(await next()).toBe("</content/api/v2/users>; rel=successor-version");
  });
});
