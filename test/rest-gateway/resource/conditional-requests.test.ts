import { beforeAll, describe, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { openResources, type Resources } from "./open-resources.ts";

let ask: Resources["ask"];
let made = 0;

const resources = useFixture(openResources);
beforeAll(async () => {
  ask = resources.ask;
});

async function newUser() {
  const body = { name: "Ada", email: `conditional-${++made}@example.org`, age: 1 };
  const response = await ask("/users", { method: "POST", body });
  return { path: `/users/${response.body.id}`, tag: response.headers.get("etag")!, body: response.body };
}

const codeOf = ({ status, body }: { status: number; body: { error: { code: string } } }) => [status, body.error.code];

describe("If-None-Match", () => {
  test("is 304 without a body while nothing has changed, for a user and for a list", async () => {
    const { path } = await newUser();
    for (const address of [path, "/users?limit=2", "/api/v1/articles", `${path}?fields=name`, `${path}?links=true`]) {
      const first = await ask(address);
      const tag = first.headers.get("etag")!;
      expect(tag).toMatch(/^"[^"]+"$/);
      const again = await ask(address, { headers: { "If-None-Match": tag } });
      expect([again.status, again.text, again.headers.get("etag")]).toEqual([304, "", tag]);
      expect(again.headers.get("cache-control")).toBe(first.headers.get("cache-control"));
      expect((await ask(address, { headers: { "If-None-Match": `"other", W/${tag}` } })).status).toBe(304);
      expect((await ask(address, { method: "HEAD", headers: { "If-None-Match": "*" } })).status).toBe(304);
      expect((await ask(address, { headers: { "If-None-Match": '"other"' } })).status).toBe(200);
    }
  });

  test("the tag identifies the representation", async () => {
    const { path, tag } = await newUser();
    expect((await ask(path)).headers.get("etag")).toBe(tag);
    const others = [`${path}?fields=name`, `${path}?links=true`, path.replace("/users", "/api/v2/users")];
    for (const other of others) expect((await ask(other)).headers.get("etag")).not.toBe(tag);
  });

  test("any change changes the tag", async () => {
    const { path, tag } = await newUser();
    const changed = await ask(path, { method: "PATCH", body: { age: 2 } });
    expect(changed.headers.get("etag")).not.toBe(tag);
    const { status, headers, body } = await ask(path, { headers: { "If-None-Match": tag } });
    expect([status, body.age, headers.get("etag")]).toEqual([200, 2, changed.headers.get("etag")]);
  });
});

describe("If-Modified-Since", () => {
  test("is 304 without a body for an unchanged row", async () => {
    const { path } = await newUser();
    const since = (await ask(path)).headers.get("last-modified")!;
    expect(new Date(since).toUTCString()).toBe(since);
    const again = await ask(path, { headers: { "If-Modified-Since": since } });
    expect([again.status, again.text]).toEqual([304, ""]);
    const earlier = new Date(Date.parse(since) - 1000).toUTCString();
    expect((await ask(path, { headers: { "If-Modified-Since": earlier } })).status).toBe(200);
    expect((await ask(path, { headers: { "If-Modified-Since": "the other day" } })).status).toBe(200);
  });

  test("a change within the same second is detected", async () => {
    for (let round = 0; round < 5; round++) {
      const { path } = await newUser();
      const since = (await ask(path)).headers.get("last-modified")!;
      await ask(path, { method: "PATCH", body: { age: 2 } });
      const { status, body } = await ask(path, { headers: { "If-Modified-Since": since } });
      expect([status, body.age]).toEqual([200, 2]);
    }
  });

  test("a change has a date when it is some seconds old", async () => {
    const { path, body } = await newUser();
    await resources.owner.query("alter table users disable trigger _100_timestamps");
    const at = new Date(Date.now() - 60_000);
    await resources.owner.query(
      "update users set created_at = $2::timestamptz - interval '1 hour', updated_at = $2 where id = $1",
      [body.id, at],
    );
    await resources.owner.query("alter table users enable trigger _100_timestamps");
    const response = await ask(path);
    expect(Date.parse(response.headers.get("last-modified")!)).toBe(Math.floor(at.getTime() / 1000) * 1000);
  });

  test("a row with embedded rows has no date, because they change independently", async () => {
    const as = await resources.addUser("Ada");
    const body = { title: "Of spring", content: "Green." };
    const { id } = (await ask("/api/v1/articles", { method: "POST", body, as })).body;
    const own = `/api/v1/articles/${id}?fields=title,created_at,updated_at`;
    const since = (await ask(own)).headers.get("last-modified")!;
    const headers = { "If-Modified-Since": since };
    expect((await ask(own, { headers })).status).toBe(304);
    for (const others of ["author.name", "comments.content"]) {
      const response = await ask(`${own},${others}`, { headers });
      expect([response.status, response.headers.get("last-modified")]).toEqual([200, null]);
      const tag = response.headers.get("etag")!;
      expect((await ask(`${own},${others}`, { headers: { "If-None-Match": tag } })).status).toBe(304);
    }
  });

  test("an entity tag takes precedence over a date", async () => {
    const { path, tag } = await newUser();
    const since = (await ask(path)).headers.get("last-modified")!;
    const headers = { "If-Modified-Since": since, "If-None-Match": '"other"' };
    expect((await ask(path, { headers })).status).toBe(200);
    const past = { "If-Modified-Since": "Thu, 01 Jan 1970 00:00:00 GMT", "If-None-Match": tag };
    expect((await ask(path, { headers: past })).status).toBe(304);
  });
});

describe("If-Match", () => {
  test.each(["PUT", "PATCH", "DELETE"])("%s is refused with 412 when another client was faster", async (method) => {
    const { path, tag, body } = await newUser();
    const send = (match: string) => ({
      method,
      headers: { "If-Match": match },
      ...(method !== "DELETE" && { body: { name: "Eve", email: body.email } }),
    });
    const between = await ask(path, { method: "PATCH", body: { age: 2 } });
    expect(codeOf(await ask(path, send(tag)))).toEqual([412, "PRECONDITION_FAILED"]);
    expect(codeOf(await ask(path, send(`W/${between.headers.get("etag")}`)))).toEqual([412, "PRECONDITION_FAILED"]);
    expect((await ask(path)).body).toEqual(between.body);
    expect((await ask(path, send(`"other", ${between.headers.get("etag")}`))).status).toBe(
      method === "DELETE" ? 204 : 200,
    );
  });

  test("* matches any row, and a missing row is 404 with any condition", async () => {
    const { path } = await newUser();
    const any = { method: "PATCH", body: { age: 5 }, headers: { "If-Match": "*" } };
    expect((await ask(path, any)).status).toBe(200);
    expect(codeOf(await ask("/users/999999", any))).toEqual([404, "USER_NOT_FOUND"]);
    const none = { method: "PATCH", body: { age: 5 }, headers: { "If-None-Match": "*" } };
    expect(codeOf(await ask(path, none))).toEqual([412, "PRECONDITION_FAILED"]);
  });

  test("the tag of a response with links, with selected fields or in version 2 matches requests for the same representation", async () => {
    const { path } = await newUser();
    let age = 1;
    for (const address of [`${path}?links=true`, `${path}?fields=name,age`, path.replace("/users", "/api/v2/users")]) {
      const tag = (await ask(address)).headers.get("etag")!;
      const send = { method: "PATCH", headers: { "If-Match": tag } };
      expect((await ask(address, { ...send, body: { age: ++age } })).status).toBe(200);
      expect((await ask(address, { ...send, body: { age: ++age } })).status).toBe(412);
    }
  });

  test("the tag of a response with embedded rows matches too", async () => {
    const ada = await resources.addUser();
    const sent = { method: "POST", body: { title: "A title", content: "x" }, as: ada };
    const path = `/api/v1/articles/${(await ask("/api/v1/articles", sent)).body.id}?fields=title,author.name,comments.id`;
    const tag = (await ask(path)).headers.get("etag")!;
    const patch = (title: string) =>
      ask(path, { method: "PATCH", headers: { "If-Match": tag }, body: { title }, as: ada });
    const response = await patch("Another title");
    expect([response.status, response.body]).toEqual([
      200,
      { title: "Another title", author: { name: "Ada" }, comments: [] },
    ]);
    expect((await patch("A third title")).status).toBe(412);
  });

  test("a row that the caller may not change is 403 with the right tag, and 412 with another", async () => {
    const [ada, eve] = [await resources.addUser(), await resources.addUser()];
    const article = { title: "A title", content: "x" };
    const { body, headers } = await ask("/api/v1/articles", { method: "POST", body: article, as: ada });
    const patch = (tag: string) =>
      ask(`/api/v1/articles/${body.id}`, {
        method: "PATCH",
        body: { content: "y" },
        headers: { "If-Match": tag },
        as: eve,
      });
    expect((await patch(headers.get("etag")!)).status).toBe(403);
    expect((await patch('"other"')).status).toBe(412);
  });
});

describe("If-Unmodified-Since", () => {
  const dated = async () => {
    const { path, tag, body } = await newUser();
    await resources.owner.query("alter table users disable trigger _100_timestamps");
    await resources.owner.query(
      "update users set created_at = now() - interval '2 days', updated_at = now() - interval '1 day' where id = $1",
      [body.id],
    );
    await resources.owner.query("alter table users enable trigger _100_timestamps");
    const since = (await ask(path)).headers.get("last-modified")!;
    return { path, tag, since, earlier: new Date(Date.parse(since) - 1000).toUTCString() };
  };
  const writes = [
    ["PUT", { name: "Eve", email: "unmodified@example.org" }],
    ["PATCH", { age: 2 }],
    ["DELETE", undefined],
  ] as const;

  test.each(writes)("%s is refused with 412 when the row has changed since", async (method, body) => {
    const { path, since, earlier } = await dated();
    const send = (date: string, others = {}) =>
      ask(path, { method, body, headers: { "If-Unmodified-Since": date, ...others } });
    const before = await ask(path);
    expect(codeOf(await send(earlier))).toEqual([412, "PRECONDITION_FAILED"]);
    expect((await ask(path)).body).toEqual(before.body);
    expect((await send(since)).status).toBe(method === "DELETE" ? 204 : 200);
    if (method === "DELETE") return expect(codeOf(await send(since))).toEqual([404, "USER_NOT_FOUND"]);
    // It was changed in this moment.
    expect(codeOf(await send(since))).toEqual([412, "PRECONDITION_FAILED"]);
    expect((await send("the other day")).status).toBe(200);
    const tag = (await ask(path)).headers.get("etag")!;
    expect((await send(earlier, { "If-Match": tag })).status).toBe(200);
  });

  test("a change within the same second as the insert is detected, whichever fields are selected", async () => {
    const { path } = await newUser();
    const since = (await ask(path)).headers.get("last-modified")!;
    const patch = (age: number) =>
      ask(`${path}?fields=age`, { method: "PATCH", body: { age }, headers: { "If-Unmodified-Since": since } });
    expect((await patch(2)).status).toBe(200);
    expect((await patch(3)).status).toBe(412);
  });

  test("only one of several concurrent requests with the same date succeeds", async () => {
    const { path, since } = await dated();
    const response = await Promise.all(
      Array.from({ length: 12 }, (_, age) =>
        ask(path, { method: "PATCH", body: { age }, headers: { "If-Unmodified-Since": since } }),
      ),
    );
    expect(response.map(({ status }) => status).sort()).toEqual([200, ...Array.from({ length: 11 }, () => 412)]);
  });

  test("a read-only row matches its tag, or is 412", async () => {
    const { path, since, earlier } = await dated();
    expect((await ask(path, { headers: { "If-Unmodified-Since": since } })).status).toBe(200);
    expect(codeOf(await ask(path, { headers: { "If-Unmodified-Since": earlier } }))[0]).toBe(412);
  });
});

describe("concurrent requests", () => {
  test("with the same tag: only one succeeds", async () => {
    for (let round = 0; round < 5; round++) {
      const { path, tag } = await newUser();
      const response = await Promise.all(
        Array.from({ length: 12 }, (_, age) =>
          ask(path, { method: "PATCH", body: { age }, headers: { "If-Match": tag } }),
        ),
      );
      const statuses = response.map(({ status }) => status).sort();
      expect(statuses).toEqual([200, ...Array.from({ length: 11 }, () => 412)]);
      const winner = response.find(({ status }) => status === 200)!;
      expect((await ask(path)).body).toEqual(winner.body);
    }
  });

  test("no 304 is stale: the response includes all earlier commits", async () => {
    const { path } = await newUser();
    const known: { tag: string; age: number }[] = [];
    let committed = 0;
    let isOver = false;
    const write = async () => {
      for (let age = 1; age <= 60; age++) {
        const { body } = await ask(path, { method: "PATCH", body: { age } });
        committed = body.age;
      }
      isOver = true;
    };
    let hits = 0;
    const read = async () => {
      while (!isOver) {
        const before = committed;
        const last = known.at(-1);
        const { status, headers, body } = await ask(path, last ? { headers: { "If-None-Match": last.tag } } : {});
        if (status === 304) hits++;
        const age = status === 304 ? last!.age : body.age;
        expect(age).toBeGreaterThanOrEqual(before);
        if (status === 200) known.push({ tag: headers.get("etag")!, age });
      }
    };
    await Promise.all([write(), read(), read(), read()]);
    const { age, tag } = known.at(-1)!;
    const { status } = await ask(path, { headers: { "If-None-Match": tag } });
    expect([status === 304, age === 60]).toEqual([age === 60, age === 60]);
    expect(hits).toBeGreaterThan(0);
  });
});
