import { once } from "node:events";
import { expect, test } from "vitest";
import { WebSocket } from "ws";
import { useFixture } from "../../fixture.ts";
import { anonKey, openRealtimeFixture } from "../service.ts";

const fixture = useFixture(openRealtimeFixture);

type PageView = { readonly query?: string; readonly headers?: Readonly<Record<string, string>> };

async function socketStatus({ query = "", headers = {} }: PageView): Promise<number> {
  const url = `${fixture.service.url.replace("http", "ws")}/realtime/v1/websocket?vsn=2.0.0${query}`;
  const socket = new WebSocket(url, { headers });
  socket.on("error", () => {});
  const opened = once(socket, "open").then(() => 101);
  const refused = once(socket, "unexpected-response").then(([, response]) => response.statusCode as number);
  const status = await Promise.any([opened, refused]);
  socket.terminate();
  return status;
}

async function broadcastStatus({ query = "", headers = {} }: PageView): Promise<number> {
  const { status } = await fetch(`${fixture.service.url}/realtime/v1/api/broadcast?${query}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify({ messages: [] }),
  });
  return status;
}

const BAD = "nonsense";

test.each([
  ["is taken from the header apikey", true, { headers: { apikey: anonKey } }],
  ["is taken from the header X-API-Key", true, { headers: { "X-API-Key": anonKey } }],
  ["is taken from the address", true, { query: `&apikey=${anonKey}` }],
  [
    "in the apikey header takes precedence",
    true,
    { headers: { apikey: anonKey, "X-API-Key": BAD }, query: `&apikey=${BAD}` },
  ],
  ["in X-API-Key comes before the address", true, { headers: { "X-API-Key": anonKey }, query: `&apikey=${BAD}` }],
  ["is not looked for behind one that is no good", false, { headers: { apikey: BAD, "X-API-Key": anonKey } }],
  ["is looked for behind an empty one", true, { headers: { apikey: "" }, query: `&apikey=${anonKey}` }],
])("a key %s, for a socket as for a request", async (_, isGood, shown: PageView) => {
  expect([await socketStatus(shown), await broadcastStatus(shown)]).toEqual(isGood ? [101, 202] : [401, 401]);
});

test.each(["Basic YTpi", "Token abc", "abc"])(
  "a request with %j is rejected, even with an API key",
  async (Authorization) => {
    expect(await broadcastStatus({ headers: { Authorization } })).toBe(401);
    expect(await broadcastStatus({ headers: { Authorization, apikey: anonKey } })).toBe(401);
  },
);
