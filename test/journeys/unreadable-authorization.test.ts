import { describe, expect, test } from "vitest";
import { useFixture } from "../fixture.ts";
import { Wire } from "../graphql/server/socket/wire.ts";
import { serveGraphQL, tokenFor } from "../graphql.ts";
import { anonKey } from "../realtime/service.ts";

const graphql = useFixture(serveGraphQL);

const token = tokenFor(1);
const UNREADABLE = [token, `Token ${token}`, 'Digest username="ann"', `Bearer: ${token}`];
const JSON_TYPE = { "Content-Type": "application/json" };
const MESSAGE = 'The Authorization header cannot be read: send the word "Bearer", a space and a token.';

const ask = (path: string, headers: Readonly<Record<string, string>>, body?: object) =>
  fetch(graphql.service.url + path, {
    headers: { ...JSON_TYPE, ...headers },
    ...(body && { method: "POST", body: JSON.stringify(body) }),
  });

describe.each(UNREADABLE)("Authorization: %s", (Authorization) => {
  test.each<[string, object?]>([
    ["/rest/v1/articles"],
    ["/rest/v1/rpc/search", { keyword: "x" }],
    ["/rest/v1/"],
    ["/users"],
    ["/users", { name: "Ann", email: "ann@example.org" }],
    ["/api/v1/articles"],
    ["/api/v1/tasks/1f0c8a52-6d3b-4d52-9a44-0f2f6f7f2a11"],
    ["/auth/keys"],
    ["/realtime/v1/api/broadcast", { messages: [{ topic: "room", event: "greeting", payload: {} }] }],
  ])("is 401 at %s", async (path, body) => {
    const answer = await ask(path, { Authorization, apikey: anonKey }, body);
    expect([answer.status, answer.headers.get("www-authenticate")]).toEqual([
      401,
      'Bearer error="invalid_token", error_description="Unsupported authorization scheme"',
    ]);
  });

  test("leaves a GraphQL operation anonymous, which its response reports", async () => {
    const run = async (query: string) => (await ask("/graphql", { Authorization }, { query })).json();
    const extensions = { authentication: { code: "INVALID_TOKEN", message: MESSAGE } };
    expect(await run("{ users { id } }")).toEqual({ data: { users: [] }, extensions });
    expect(await run("{ me { id } }")).toMatchObject({
      errors: [{ extensions: { code: "AUTH_REQUIRED" } }],
      extensions,
    });
  });

  test("leaves a GraphQL socket anonymous, which each result reports", async () => {
    const wire = await Wire.open(graphql.socketUrl, "graphql-transport-ws");
    wire.say({ type: "connection_init", payload: { Authorization } });
    expect(await wire.hear()).toEqual({ type: "connection_ack" });
    wire.say({ id: "1", type: "subscribe", payload: { query: "{ __typename }" } });
    expect(await wire.hear()).toEqual({
      id: "1",
      type: "next",
      payload: {
        data: { __typename: "Query" },
        extensions: { authentication: { code: "INVALID_TOKEN", message: MESSAGE } },
      },
    });
    wire.socket.close();
  });
});

test("a GraphQL response reports an expired token, and nothing for a valid one", async () => {
  const extensionsFor = async (given: string) => {
    const answer = await ask("/graphql", { Authorization: `Bearer ${given}` }, { query: "{ __typename }" });
    return ((await answer.json()) as { extensions?: object }).extensions;
  };
  expect(await extensionsFor(tokenFor(1, { exp: 1 }))).toEqual({
    authentication: { code: "TOKEN_EXPIRED", message: "The token has expired; refresh it or sign in again." },
  });
  expect(await extensionsFor(token)).toBeUndefined();
});
