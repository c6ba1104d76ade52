import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { useFixture } from "../../../fixture.ts";
import { until } from "../../../until.ts";
import { openResources, type Resources, type TestResponse } from "../open-resources.ts";

let ask: Resources["ask"];
let ada: number;

const resources = useFixture(openResources);
beforeAll(async () => {
  ask = resources.ask;
  ada = await resources.addUser();
  await resources.owner.query("insert into articles (title, content, author_id) values ('A title', 'x', $1)", [ada]);
});

const codeOf = ({ status, body }: TestResponse) => [status, body.error.code];

const V1 = ["id", "title", "content", "summary", "status", "author_id", "tags", "created_at", "updated_at"];
const V2 = ["id", "title", "content", "summary", "status", "authorId", "tags", "createdAt", "updatedAt"];

describe("the requested version", () => {
  test.each([
    ["/api/v2/articles/1", {}],
    ["/api/articles/1?version=2", {}],
    ["/api/articles/1", { "X-API-Version": "2" }],
    ["/api/articles/1", { "Accept-Version": "2" }],
    ["/api/articles/1", { Accept: "application/vnd.anybody.v2+json" }],
    ["/api/v2/articles/1?version=2", { "X-API-Version": "2", Accept: "application/vnd.content-service.v2+json" }],
  ])("%s with %j is version 2", async (path, headers) => {
    const { status, body } = await ask(path, { headers: headers as Record<string, string> });
    expect([status, Object.keys(body)]).toEqual([200, V2]);
  });

  test("is version 1 by default", async () => {
    for (const path of ["/api/articles/1", "/api/v1/articles/1"]) {
      expect(Object.keys((await ask(path)).body)).toEqual(V1);
    }
    const vendor = await ask("/api/articles/1", { headers: { Accept: "application/vnd.anybody+json" } });
    expect([Object.keys(vendor.body), vendor.headers.get("content-type")]).toEqual([
      V1,
      "application/vnd.anybody+json; charset=utf-8",
    ]);
  });

  test("/users has versions as well", async () => {
    for (const headers of [{ "X-API-Version": "2" }, { Accept: "application/vnd.x.v2+json" }]) {
      const { body } = await ask("/users", { headers });
      expect(Object.keys(body.data[0])).toEqual(["id", "name", "email", "age", "avatar", "createdAt", "updatedAt"]);
    }
    expect((await ask("/users?version=2")).body.pagination).toEqual({ page: 1, limit: 20, total: 1, totalPages: 1 });
  });

  test.each([
    ["/api/v1/articles?version=2", {}],
    ["/api/articles?version=1", { "X-API-Version": "2" }],
    ["/api/articles", { "X-API-Version": "1", "Accept-Version": "2" }],
    ["/users?version=1", { Accept: "application/vnd.x.v2+json" }],
    ["/users?version=1&version=2", {}],
  ])("%s with %j is contradictory: 400", async (path, headers) => {
    expect(codeOf(await ask(path, { headers: headers as Record<string, string> }))).toEqual([400, "VALIDATION_ERROR"]);
  });

  test.each([
    ["/api/v9/articles", {}],
    ["/users?version=9", {}],
    ["/users?version=two", {}],
    ["/users", { "X-API-Version": "9" }],
    ["/users", { "Accept-Version": "1.0" }],
    ["/users", { Accept: "application/vnd.x.v9+json" }],
    ["/users", { Accept: "application/vnd.x.v2.1+json" }],
    ["/users", { Accept: "application/vnd.x.v2x+json" }],
    ["/api/articles", { Accept: "application/vnd.x.v8engine+json" }],
    ["/users", { Accept: "application/vnd.x.v1.0.0+json" }],
    ["/api/articles", { Accept: "application/vnd.x.v2-beta+json" }],
  ])("%s with %j is not served: 400 with the served versions", async (path, headers) => {
    const response = await ask(path, { headers: headers as Record<string, string> });
    expect(codeOf(response)).toEqual([400, "UNSUPPORTED_VERSION"]);
    expect(response.body.supportedVersions).toEqual([1, 2]);
  });
});

describe("version 2", () => {
  test("reads, filters, sorts and writes by its own field names", async () => {
    const { status, body, headers } = await ask("/api/v2/articles", {
      method: "POST",
      body: { title: "Second", content: "y" },
      as: ada,
    });
    expect([status, body.authorId, headers.get("location")]).toEqual([201, ada, `/api/v2/articles/${body.id}`]);
    const list = await ask(`/api/v2/articles?authorId=${ada}&sort=createdAt:desc&fields=id,createdAt,author.createdAt`);
    expect(list.body.data[0]).toEqual({
      id: body.id,
      createdAt: body.createdAt,
      author: { createdAt: expect.any(String) },
    });
    expect((await ask(`/api/v2/articles?author_id=${ada}`)).body.error.message).toContain('"authorId"');
    const comment = await ask("/api/v2/comments", {
      method: "POST",
      body: { articleId: body.id, content: "Hm" },
      as: ada,
    });
    expect([comment.status, comment.body.articleId]).toEqual([201, body.id]);
    const wrong = await ask("/api/v2/comments", { method: "POST", body: { articleId: "x", content: "Hm" }, as: ada });
    expect(wrong.body.error.details[0].field).toBe("articleId");
    expect((await ask(`/api/v2/articles/${body.id}/publish`, { method: "POST", as: ada })).body.authorId).toBe(ada);
  });

  test("has the general codes, for users too", async () => {
    expect(codeOf(await ask("/api/v2/users/999999"))).toEqual([404, "RESOURCE_NOT_FOUND"]);
    expect(codeOf(await ask("/api/v2/users/x"))).toEqual([400, "VALIDATION_ERROR"]);
    const post = (body: unknown) => ask("/api/v2/users", { method: "POST", body });
    expect(codeOf(await post("{"))).toEqual([400, "VALIDATION_ERROR"]);
    expect(codeOf(await post({ name: "Ada" }))).toEqual([400, "VALIDATION_ERROR"]);
    const broken = await post({ name: "Ada", email: "none" });
    expect([...codeOf(broken), broken.body.errors[0].field]).toEqual([422, "VALIDATION_ERROR", "email"]);
  });
});

describe("api.versions", () => {
  afterEach(async () => {
    await resources.owner.query(
      "update api.versions set status = 'supported', sunset = null, migration_guide = null where number = 1",
    );
    await until(async () => (await ask("/users")).headers.get("x-api-warn") === null);
  });

  test("a deprecated version is reported on errors, too", async () => {
    await resources.owner.query("update api.versions set status = 'deprecated' where number = 1");
    await until(async () => (await ask("/users")).headers.get("x-api-warn") !== null);
    const refused = (path: string) => ask(path, { headers: { Authorization: "Bearer nonsense" } });
    for (const path of ["/users", "/api/v1/articles/1"]) {
      const response = await refused(path);
      expect([...codeOf(response), response.headers.get("x-api-warn")]).toEqual([
        401,
        "INVALID_TOKEN",
        "Version 1 is deprecated. Move to version 2.",
      ]);
    }
    expect((await refused("/api/v2/articles")).headers.get("x-api-warn")).toBeNull();
    expect(codeOf(await refused("/api/v9/articles"))).toEqual([401, "INVALID_TOKEN"]);
  });

  test("a deprecated version is reported in headers and in bodies that are objects", async () => {
    expect((await ask("/users/1")).headers.get("x-api-warn")).toBeNull();
    await resources.owner.query(
      "update api.versions set status = 'deprecated', sunset = '2030-01-02T03:04:05Z', migration_guide = 'https://example.org/move' where number = 1",
    );
    await until(async () => (await ask("/users")).headers.get("x-api-warn") !== null);
    const deprecation = {
      deprecated: true,
      message: expect.stringContaining("deprecated"),
      sunset: "2030-01-02T03:04:05.000Z",
      migrationGuide: "https://example.org/move",
    };
    for (const path of ["/users/1", "/api/v1/articles", "/users?size=2", "/users?envelope=true"]) {
      const { headers, body } = await ask(path);
      expect(body.deprecation).toEqual(deprecation);
      expect(headers.get("x-api-sunset")).toBe("Wed, 02 Jan 2030 03:04:05 GMT");
      expect(headers.get("link")).toBe(
        `<${path.replace(/^(\/api\/v1)?/, "/api/v2").replace(/\?.*/, "")}>; rel=successor-version`,
      );
    }
    expect(Array.isArray((await ask("/users")).body)).toBe(true);
    for (const refused of ["/users/999999", "/users/x", "/api/v1/nothing"]) {
      expect((await ask(refused)).headers.get("x-api-warn")).toContain("deprecated");
    }
    expect((await ask("/api/v2/users")).headers.get("x-api-warn")).toBeNull();
    const tag = (await ask("/users/1")).headers.get("etag")!;
    expect((await ask("/users/1", { headers: { "If-None-Match": tag } })).status).toBe(304);
    expect((await ask("/users/1", { method: "PATCH", body: { age: 3 }, headers: { "If-Match": tag } })).status).toBe(
      200,
    );
  });

  test("a retired version is 410", async () => {
    await resources.owner.query("update api.versions set status = 'retired', sunset = '2020-01-01Z' where number = 1");
    await until(async () => (await ask("/users")).status === 410);
    const response = await ask("/api/v1/articles");
    expect(codeOf(response)).toEqual([410, "VERSION_RETIRED"]);
    expect(response.headers.get("x-api-sunset")).toBe("Wed, 01 Jan 2020 00:00:00 GMT");
    expect(response.headers.get("link")).toBe("</api/v2/articles>; rel=successor-version");
    expect((await ask("/api/v2/articles")).status).toBe(200);
    expect((await ask("/users?version=9")).body.supportedVersions).toEqual([2]);
  });
});

/** A version may be remembered for two seconds. */
