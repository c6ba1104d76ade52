import { serverAudits } from "graphql-http";
import jwt from "jsonwebtoken";
import { beforeAll, describe, expect, test } from "vitest";
import { useFixture } from "../../../fixture.ts";
import { serveGraphQL, tokenFor } from "../../../graphql.ts";
import { SECRET } from "../../../secret.ts";

const graphql = useFixture(serveGraphQL);
beforeAll(() => graphql.sql("insert into public.users (name, email) values ('Ann', 'ann@example.org')"));

const JSON_TYPE = { "Content-Type": "application/json" };
const OWN_TYPE = "application/graphql-response+json";

function post(body: unknown, headers: Readonly<Record<string, string>> = {}): Promise<Response> {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return fetch(graphql.url, { method: "POST", headers: { ...JSON_TYPE, ...headers }, body: text });
}

function get(parameters: Readonly<Record<string, string>>, headers: Readonly<Record<string, string>> = {}) {
  return fetch(`${graphql.url}?${new URLSearchParams(parameters)}`, { headers });
}

async function codeOf(response: Response): Promise<string> {
  const { errors } = (await response.json()) as { errors: { extensions: { code: string } }[] };
  return errors[0]!.extensions.code;
}

describe("the audit of GraphQL over HTTP", () => {
  for (const audit of serverAudits({ url: () => graphql.url })) {
    test(audit.name, async () => {
      expect(await audit.fn()).toMatchObject({ status: "ok" });
    });
  }
});

describe("a request", () => {
  test("gets a JSON response with its id, never cached", async () => {
    const response = await post({ query: "{ user(id: 1) { name } }" }, { "X-Request-Id": "mine" });
    expect(response.status).toBe(200);
    expect(Object.fromEntries(response.headers)).toMatchObject({
      "content-type": "application/json; charset=utf-8",
      "cache-control": "no-store",
      "x-request-id": "mine",
      "access-control-allow-origin": "*",
    });
    expect(await response.text()).toBe('{"data":{"user":{"name":"Ann"}}}');
  });

  test.each([
    ["application/json;q=0.5, application/graphql-response+json", OWN_TYPE],
    ["application/graphql-response+json, application/json", OWN_TYPE],
    ["application/json, application/graphql-response+json;q=0.9", "application/json"],
    ["text/html, application/*;q=0.1", "application/json"],
    ["", "application/json"],
    ["application/json; charset=utf-8", "application/json"],
  ])("that accepts %s gets %s", async (accept, type) => {
    const response = await post({ query: "{ __typename }" }, { Accept: accept });
    expect(response.headers.get("content-type")).toBe(`${type}; charset=utf-8`);
  });

  test.each(["text/html", "application/json; charset=latin1", "application/json;q=0"])(
    "that accepts only %s is 406",
    async (accept) => {
      const response = await post({ query: "{ __typename }" }, { Accept: accept });
      expect([response.status, await codeOf(response)]).toEqual([406, "NOT_ACCEPTABLE"]);
    },
  );

  test.each([
    "text/plain",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/graphql",
    "application/json; charset=utf-16",
  ])("with a body of type %s is 415: any site can send it with a user's cookies", async (type) => {
    const response = await post('{"query":"{ __typename }"}', { "Content-Type": type });
    expect([response.status, await codeOf(response)]).toEqual([415, "UNSUPPORTED_MEDIA_TYPE"]);
  });

  test.each([
    ["[]", "a batch"],
    ['[{"query":"{ __typename }"}]', "a batch of one"],
    ['"{ __typename }"', "a text"],
    ["null", "null"],
    ["{", "no JSON"],
    ["{}", "nothing"],
    ['{"query":"{ __typename }","variables":[]}', "variables in a list"],
  ])("whose body is %s, %s, is 400", async (body) => {
    const response = await post(body);
    expect([response.status, await codeOf(response)]).toEqual([400, "VALIDATION_ERROR"]);
  });

  test("by GET may read, with variables", async () => {
    const query = "query ($id: ID!) { user(id: $id) { name } }";
    const response = await get({ query, variables: '{"id":1}' });
    expect(await response.json()).toEqual({ data: { user: { name: "Ann" } } });
    expect(await (await get({ query, variables: "{" })).status).toBe(400);
  });

  test("by GET may not run a mutation, with any Accept header", async () => {
    const query = 'mutation { createUser(input: {name: "Eve", email: "eve@example.org"}) { id } }';
    for (const accept of ["application/json", OWN_TYPE]) {
      const response = await get({ query }, { Accept: accept });
      expect([response.status, response.headers.get("allow")]).toEqual([405, "POST"]);
      expect(await codeOf(response)).toBe("METHOD_NOT_ALLOWED");
    }
    expect(await graphql.sql("select from public.users where name = 'Eve'")).toHaveLength(0);
  });

  test("by GET with a mutation beside the query runs the query that it names", async () => {
    const query = "query Read { __typename } mutation Write { __typename }";
    expect(await (await get({ query, operationName: "Read" })).json()).toEqual({ data: { __typename: "Query" } });
    expect((await get({ query, operationName: "Write" })).status).toBe(405);
  });

  test("by GET with an empty operationName has no operation name", async () => {
    expect(await (await get({ query: "{ __typename }", operationName: "" })).json()).toEqual({
      data: { __typename: "Query" },
    });
  });

  test("by HEAD has the response of GET without the body", async () => {
    const response = await fetch(`${graphql.url}?query={__typename}`, { method: "HEAD" });
    expect([response.status, response.headers.get("content-length")]).toEqual([200, "31"]);
  });

  test.each(["PUT", "DELETE", "PATCH"])("by %s is 405", async (method) => {
    const response = await fetch(graphql.url, { method });
    expect([response.status, response.headers.get("allow")]).toEqual([405, "GET, HEAD, OPTIONS, POST"]);
  });

  test("by OPTIONS returns the methods", async () => {
    const response = await fetch(graphql.url, { method: "OPTIONS" });
    expect([response.status, response.headers.get("allow")]).toEqual([204, "GET, HEAD, OPTIONS, POST"]);
  });

  test("to a path below the endpoint is 404", async () => {
    const response = await fetch(`${graphql.url}/x`, { method: "POST", headers: JSON_TYPE, body: "{}" });
    expect([response.status, await codeOf(response)]).toEqual([404, "RESOURCE_NOT_FOUND"]);
  });

  test("for a subscription is refused with a hint to use a WebSocket", async () => {
    const response = await post({ query: "subscription { onArticleCreated { id } }" });
    expect((await response.json()) as object).toMatchObject({ errors: [{ extensions: { code: "VALIDATION_ERROR" } }] });
  });

  test.each([
    [
      "more values than are parsed in a moment",
      `{"query":"{ __typename }","variables":{"a":[${"[],".repeat(60_000)}0]}}`,
      "50000 values",
    ],
    ["more levels than anybody writes", "[".repeat(1_000_000), "1000 levels"],
    ["more levels, which all end", `${'{"a":'.repeat(2_000)}1${"}".repeat(2_000)}`, "1000 levels"],
  ])("whose body has %s is 400, before it is executed", async (_what, body, message) => {
    const response = await post(body);
    expect(response.status).toBe(400);
    expect(await response.json()).toEqual({
      errors: [{ message: expect.stringContaining(message), extensions: { code: "VALIDATION_ERROR" } }],
    });
  });

  test("whose body is too large is 413", async () => {
    const small = await serveGraphQL({ settings: { MAX_BODY_BYTES: "2048" }, database: graphql.database });
    try {
      const body = JSON.stringify({ query: `{ __typename } #${"x".repeat(3000)}` });
      const response = await fetch(small.url, { method: "POST", headers: JSON_TYPE, body });
      expect([response.status, await codeOf(response)]).toEqual([413, "PAYLOAD_TOO_LARGE"]);
    } finally {
      await small.stop();
    }
  });
});

describe("the caller", () => {
  const query = "{ me { name } }";

  test("is the user of the token", async () => {
    expect((await graphql.ask(query, { token: tokenFor(1) })).data).toEqual({ me: { name: "Ann" } });
  });

  test("may authenticate by an API key, in a header or in the URL", async () => {
    const key = tokenFor(1);
    const body = JSON.stringify({ query });
    for (const [address, headers] of [
      [graphql.url, { "X-API-Key": key }],
      [graphql.url, { apikey: key }],
      [`${graphql.url}?api_key=${key}`, {}],
    ] as const) {
      const response = await fetch(address, { method: "POST", headers: { ...JSON_TYPE, ...headers }, body });
      expect(await response.json()).toEqual({ data: { me: { name: "Ann" } } });
    }
  });

  test.each([
    ["no token", undefined],
    ["a token that is none", "nonsense"],
    ["a token that was signed by somebody else", jwt.sign({ sub: "1", role: "authenticated" }, `not ${SECRET}`)],
  ])("is anonymous with %s, and public data is still served", async (_, token) => {
    const request = token === undefined ? {} : { token };
    const response = await graphql.ask(`{ user(id: 1) { name } ${query.slice(1)}`, request);
    expect(response.status).toBe(200);
    expect(response.errors).toMatchObject([{ path: ["me"], extensions: { code: "AUTH_REQUIRED" } }]);
    expect((await graphql.ask("{ user(id: 1) { name } }", request)).data).toEqual({ user: { name: "Ann" } });
  });

  test("gets AUTH_EXPIRED when an expired token would have been needed", async () => {
    const token = tokenFor(1, { exp: 1 });
    expect((await graphql.ask("{ user(id: 1) { name } }", { token })).errors).toBeUndefined();
    expect((await graphql.ask(query, { token })).errors).toMatchObject([{ extensions: { code: "AUTH_EXPIRED" } }]);
  });

  test.each(["nobody_knows_me", "postgres", "none"])(
    "may not use the role %o, even with a token for it",
    async (role) => {
      const { data, errors } = await graphql.ask("{ user(id: 1) { name } }", { token: tokenFor(1, { role }) });
      expect(data).toEqual({ user: null });
      expect(errors).toMatchObject([{ extensions: { code: "PERMISSION_DENIED" } }]);
      expect(errors[0].message).not.toContain("postgres");
    },
  );

  test("reaches SQL with the settings of every interface", async () => {
    await graphql.sql(`
      create function public.told() returns text language sql stable
      return concat_ws(' ', current_setting('request.interface'), current_setting('request.method'),
        current_setting('request.path'), current_setting('request.id'),
        current_setting('request.headers')::json ->> 'x-note');
      grant execute on function public.told() to anon`);
    await expect
      .poll(async () => (await graphql.ask("{ told }", { headers: { "X-Request-Id": "r1", "X-Note": "hi" } })).data)
      .toEqual({ told: "graphql POST /graphql r1 hi" });
  });
});
