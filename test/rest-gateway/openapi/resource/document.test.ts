import { hash } from "node:crypto";
import { once } from "node:events";
import { get, type IncomingMessage } from "node:http";
import { buffer } from "node:stream/consumers";
import { gunzipSync } from "node:zlib";
import { Validator } from "@seriousme/openapi-schema-validator";
import { describe, expect, test, vi } from "vitest";
import { useFixture } from "../../../fixture.ts";
import { openResources } from "../../resource/open-resources.ts";
import { openOpenApiFixture } from "./openapi-fixture.ts";

const fixture = useFixture(openOpenApiFixture);

const pathsOf = async (role: string, version = 1) =>
  Object.keys((await fixture.json(`/openapi.json?version=${version}`, role)).paths);

describe("/openapi.json", () => {
  test.each([
    ["anon", 1],
    ["anon", 2],
    ["authenticated", 1],
    ["service_role", 2],
  ] as const)("is a valid document for %s in version %i", async (role, version) => {
    const document = await fixture.json(`/openapi.json?version=${version}`, role);
    expect(document.openapi).toMatch(/^3\.1/);
    const { valid, errors } = await new Validator().validate(document);
    expect(errors ?? []).toEqual([]);
    expect(valid).toBe(true);
    const ids = Object.values<Record<string, { operationId: string }>>(document.paths).flatMap((methods) =>
      Object.values(methods).map(({ operationId }) => operationId),
    );
    expect(new Set(ids).size).toBe(ids.length);
  });

  test("names no parameter twice if a column has the name of a parameter of all lists", async () => {
    const { paths, components } = await fixture.json("/openapi.json");
    const result: { name?: string; $ref?: string }[] = paths["/api/v1/keyless"].get.parameters;
    const names = result.map(({ name, $ref }) => name ?? components.parameters[$ref!.split("/").at(-1)!].name);
    expect(names).toEqual([...new Set(names)]);
    expect(names).toEqual(expect.arrayContaining(["word", "sort"]));
    expect(names).not.toContain("version");
  });

  test("has the operations that each role may use", async () => {
    const { paths: forAnybody } = await fixture.json("/openapi.json");
    const { paths: forUsers } = await fixture.json("/openapi.json", "authenticated");
    expect(Object.keys(forAnybody["/api/v1/articles"])).toEqual(["get"]);
    expect(Object.keys(forUsers["/api/v1/articles"])).toEqual(["get", "post"]);
  });

  test("documents defaults of request bodies in words, since generated clients require properties with a `default`", async () => {
    const { components } = await fixture.json("/openapi.json", "service_role");
    const sent = Object.entries(components.schemas).filter(([name]) => /\.(create|replace|update)$/.test(name));
    expect(sent.length).toBeGreaterThan(5);
    expect(sent.filter(([, schema]) => JSON.stringify(schema).includes('"default":'))).toEqual([]);
    expect(sent.filter(([, schema]) => JSON.stringify(schema).includes("Default: `"))).not.toEqual([]);
  });

  test("has columns that may be written and not read", async () => {
    const path = "/api/v1/drop-box";
    const { paths } = await fixture.json("/openapi.json");
    expect(Object.keys(paths[path])).toEqual(["post"]);
    expect(paths[path].post.responses["201"]).toEqual({ description: expect.any(String) });
    const headers = { "Content-Type": "application/json" };
    const result = await fixture.ask({ method: "POST", url: path, headers, body: '{"line": "dropped"}' }, "anon");
    expect([result.status, result.text]).toEqual([201, ""]);
  });

  test("has the names of its version, and /users in the first only", async () => {
    const [one, two] = [await fixture.json("/openapi.json"), await fixture.json("/openapi.json?version=2")];
    expect(Object.keys(one.components.schemas["articles.row"].properties)).toContain("author_id");
    expect(Object.keys(two.components.schemas["articles.row"].properties)).toContain("authorId");
    expect(Object.keys(one.paths)).toContain("/users/{id}");
    expect(Object.keys(two.paths)).not.toContain("/users/{id}");
    expect(
      (await fixture.ask({ method: "GET", url: "/openapi.json?version=9", headers: {}, body: null }, "anon")).status,
    ).toBe(400);
  });

  test("follows the configured versions: deprecated ones are marked, retired ones are omitted", async () => {
    await fixture.owner.query("update api.versions set status = 'deprecated' where number = 1");
    await vi.waitFor(
      async () => {
        const { paths } = await fixture.json("/openapi.json");
        expect(paths["/users"].get.deprecated).toBe(true);
        expect(paths["/auth/login"].post).not.toHaveProperty("deprecated");
      },
      { timeout: 60_000, interval: 100 },
    );
    await fixture.owner.query("update api.versions set status = 'retired' where number = 1");
    await vi.waitFor(async () => expect((await fixture.json("/openapi.json")).info.version).toBe("2"), {
      timeout: 60_000,
      interval: 100,
    });
    const gone = await fixture.ask({ method: "GET", url: "/openapi.json?version=1", headers: {}, body: null }, "anon");
    expect(gone.status).toBe(400);
    expect(JSON.parse(gone.text).supportedVersions).toEqual([2]);
    await fixture.owner.query("update api.versions set status = 'supported' where number = 1");
    await vi.waitFor(async () => expect((await fixture.json("/openapi.json")).info.version).toBe("1"), {
      timeout: 60_000,
      interval: 100,
    });
  });

  test("has actions, nested collections, keys of several columns, tasks and the sign-in", async () => {
    const paths = await pathsOf("authenticated");
    for (const path of [
      "/api/v1/articles/{id}/publish",
      "/api/v1/articles/{parentId}/comments/{id}",
      "/api/v1/odd-things/{id}/weigh",
      "/api/v1/keyless",
      "/api/v1/tasks/{taskId}",
      "/auth/login",
      "/api/auth/me",
    ]) {
      expect(paths).toContain(path);
    }
    expect(paths).not.toContain("/api/v1/keyless/{id}");
  });

  test("has the public URL of the service", async () => {
    expect((await fixture.json("/openapi.json")).servers).toEqual([{ url: "/" }]);
    const behind = await openResources({ settings: { PUBLIC_URL: "https://api.example.org/content/" } });
    try {
      const { body } = await behind.ask("/openapi.json");
      expect(body.servers).toEqual([{ url: "https://api.example.org/content" }]);
    } finally {
      await behind.close();
    }
  });

  test("is 304 for a client that has it", async () => {
    const ask = (headers: Record<string, string>) =>
      fixture.ask({ method: "GET", url: "/openapi.json", headers, body: null }, "anon");
    const { text } = await ask({});
    const tag = `"${hash("sha256", text, "hex")}"`;
    for (const known of [tag, `W/${tag}`, `"x", ${tag}`, "*"]) {
      expect(await ask({ "If-None-Match": known })).toMatchObject({ status: 304, text: "" });
    }
    expect((await ask({ "If-None-Match": '"x"' })).status).toBe(200);
  });

  test("has only the requested tables, or schema, and refers to nothing else", async () => {
    for (const query of ["?table=articles", "?table=comments&table=articles&version=2", "?schema=public"]) {
      const document = await fixture.json(`/openapi.json${query}`, "authenticated");
      expect(await new Validator().validate(document), query).toEqual({ valid: true });
      const text = JSON.stringify(document);
      for (const [, key] of text.matchAll(/"#\/components\/schemas\/([^"]*)"/g)) {
        expect(document.components.schemas, query).toHaveProperty([key!]);
      }
      expect(document.paths).not.toHaveProperty(["/auth/login"]);
    }
    const { paths } = await fixture.json("/openapi.json?table=articles");
    expect(Object.keys(paths).every((path) => path.startsWith("/api/v1/articles"))).toBe(true);
    expect(Object.keys(paths)).toEqual(
      expect.arrayContaining(["/api/v1/articles", "/api/v1/articles/{parentId}/comments"]),
    );
    for (const query of ["table=articles&table=no-such", "table=", "schema=private"]) {
      const { status } = await fixture.ask(
        { method: "GET", url: `/openapi.json?${query}`, headers: {}, body: null },
        "anon",
      );
      expect(status, query).toBe(400);
    }
  });

  test("is compressed for clients that accept it, and streamed to others if it is large", async () => {
    const large = await openResources({
      template: "empty",
      settings: { REST_REQUIRE_APIKEY: "false" },
      sql: `
        grant usage on schema public to anon;
        do $$ begin for n in 1..160 loop
          execute format('create table t%s (id int primary key, %s)', n,
            (select string_agg(format('c%s text', c), ', ') from generate_series(1, 20) c));
        end loop; end $$;
        grant select on all tables in schema public to anon`,
    });
    try {
      for (const path of ["/openapi.json", "/rest/v1/"]) {
        const ask = async (coding: string) => {
          const { hostname, port } = new URL(large.service.url);
          const request = get({ hostname, port, path, headers: { "Accept-Encoding": coding } });
          const [response] = (await once(request, "response")) as [IncomingMessage];
          return { headers: response.headers, body: await buffer(response) };
        };
        const plain = await ask("identity");
        expect(plain.headers["content-encoding"]).toBeUndefined();
        for (const coding of ["gzip", "br, GZIP;q=0.5", "*"]) {
          const { headers, body } = await ask(coding);
          expect([headers["content-encoding"], headers.vary]).toEqual([
            "gzip",
            expect.stringContaining("Accept-Encoding"),
          ]);
          expect(gunzipSync(body).equals(plain.body)).toBe(true);
        }
        expect((await ask("gzip;q=0, *")).headers["content-encoding"]).toBeUndefined();
        expect(plain.headers.etag).toBe((await ask("gzip")).headers.etag);
      }
      const { headers, body } = await large.ask("/openapi.json").then(({ headers, text }) => ({ headers, body: text }));
      expect(body.length).toBeGreaterThan(1024 * 1024);
      const again = await large.ask("/openapi.json", { headers: { "If-None-Match": headers.get("etag")! } });
      expect([again.status, again.text]).toEqual([304, ""]);
    } finally {
      await large.close();
    }
  });

  test("has a new table with its comments, and no table without grants", async () => {
    expect(await pathsOf("anon")).not.toContain("/api/v1/fresh-things");
    await fixture.owner.query(`
      create table public.fresh_things (id integer primary key, name text not null);
      comment on table public.fresh_things is 'Not seen before.';
      comment on column public.fresh_things.name is 'What it is called.';
      alter table public.fresh_things enable row level security;
      create policy all_all on public.fresh_things using (true) with check (true);
      grant select on public.fresh_things to anon;
      create table public.hidden_things (id integer primary key);
      alter table public.hidden_things enable row level security;
    `);
    await vi.waitFor(async () => expect(await pathsOf("anon")).toContain("/api/v1/fresh-things"), {
      timeout: 60_000,
      interval: 100,
    });
    const document = await fixture.json("/openapi.json");
    expect(
      document.components.schemas["fresh_things.row"] ?? document.components.schemas["fresh-2d-things.row"],
    ).toMatchObject({
      description: "Not seen before.",
      properties: { name: { type: "string", description: "What it is called." } },
    });
    expect(JSON.stringify(document)).not.toContain("hidden-things");
    expect(
      (await fixture.ask({ method: "GET", url: "/api/v1/fresh-things", headers: {}, body: null }, "anon")).status,
    ).toBe(200);
  });
});
