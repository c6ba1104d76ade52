import { randomUUID } from "node:crypto";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { beforeEach, describe, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { connectWorkers } from "../../peer-workers.ts";
import { until } from "../../until.ts";
import { CALLERS, serveAgents, textOf, tokenOf } from "./agents.ts";

const workers = connectWorkers();
const agents = useFixture(() => serveAgents({}, { peers: workers.join() }));

beforeEach(() =>
  agents.owner.query(`truncate office.notes;
    insert into office.notes (id, owner, title, team) values (1, 'ann', 'a', 1), (2, 'ann', 'b', 1), (3, 'ann', 'c', 2)`),
);
const titles = async () => {
  const { rows } = await agents.owner.query("select title from office.notes order by id");
  return rows.map(({ title }) => title);
};

const VERSIONS = ["2025-11-25", "2026-07-28"] as const;
type Action = "accept" | "decline" | "cancel";

/** A client that shows questions to its user, who gives this answer. Posts of answers go to `answersTo`. */
async function connectUser(version: (typeof VERSIONS)[number], action: Action, answersTo = agents.address) {
  const questions: string[] = [];
  const versionNegotiation = version === "2025-11-25" ? ({ mode: "legacy" } as const) : { mode: { pin: version } };
  const client = new Client({ name: "test", version: "1" }, { capabilities: { elicitation: {} }, versionNegotiation });
  client.setRequestHandler("elicitation/create", ({ params }) => {
    questions.push(params.message);
    return action === "accept" ? { action, content: {} } : { action };
  });
  const transport = new StreamableHTTPClientTransport(agents.address, {
    requestInit: { headers: { Authorization: `Bearer ${tokenOf(CALLERS.ann)}` } },
    fetch: (address, init) => fetch(/"action"/.test(String(init?.body)) ? answersTo : address, init),
  });
  await client.connect(transport);
  return { client, questions };
}

const deleteTeam = (team: number) => ({
  name: "delete_notes",
  arguments: { where: [{ column: "team", value: team }] },
});

describe.each(VERSIONS)("with %s", (version) => {
  test("a change of rows that are not named by their key is made when the user has confirmed it", async () => {
    const { client, questions } = await connectUser(version, "accept");
    expect(await client.callTool(deleteTeam(1))).toMatchObject({ structuredContent: { count: 2 } });
    expect(questions).toEqual(["Delete all rows of office.notes where team eq 1?"]);
    const set = { where: [{ column: "id", operator: "gt", value: 2 }], set: { title: "x" } };
    await client.callTool({ name: "update_notes", arguments: set });
    expect(questions[1]).toBe('Update all rows of office.notes where id gt 2? Set {"title":"x"}.');
    expect(await titles()).toEqual(["x"]);
    const named = { where: [{ column: "id", value: 3 }] };
    expect(await client.callTool({ name: "delete_notes", arguments: named })).toMatchObject({
      structuredContent: { count: 1 },
    });
    expect(questions.length).toBe(2);
    await client.close();
  });

  test.each(["decline", "cancel"] as const)("nothing is changed after %s", async (action) => {
    const { client, questions } = await connectUser(version, action);
    const result = await client.callTool(deleteTeam(1));
    expect({ isError: result.isError, text: textOf(result) }).toEqual({
      isError: true,
      text: "The user has not confirmed this change, so nothing was changed. Do not try again unless they ask for it.",
    });
    expect([questions.length, await titles()]).toEqual([1, ["a", "b", "c"]]);
    await client.close();
  });
});

test("the user sees each column of a change, also behind long values", async () => {
  const { client, questions } = await connectUser("2025-11-25", "decline");
  const where = [
    { column: "title", operator: "neq", value: "p".repeat(400) },
    { column: "team", operator: "gt", value: 0 },
  ];
  await client.callTool({ name: "update_notes", arguments: { where, set: { title: "x".repeat(400), public: true } } });
  const shortened = (letter: string) => `"${letter.repeat(99)}… (402 characters)`;
  expect(questions).toEqual([
    `Update all rows of office.notes where title neq ${shortened("p")} and team gt 0? Set {"title":${shortened("x")},"public":true}.`,
  ]);
  await client.close();
});

test("the answer may arrive at another worker", async () => {
  const other = await agents.startWorker({ peers: workers.join() });
  const { client, questions } = await connectUser("2025-11-25", "accept", new URL("/mcp", other.url));
  expect(await client.callTool(deleteTeam(2))).toMatchObject({ structuredContent: { count: 1 } });
  expect([questions.length, await titles()]).toEqual([1, ["a", "b"]]);
  await client.close();
  await other.stop();
});

/** A message as a client sends it that knows no more than the protocol. */
function post(
  message: object,
  headers: Record<string, string> = {},
  claims: object = CALLERS.ann,
  signal: AbortSignal | null = null,
) {
  return fetch(agents.address, {
    method: "POST",
    signal,
    headers: {
      "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
      Authorization: `Bearer ${tokenOf(claims)}`,
      ...headers,
    },
    body: JSON.stringify({ jsonrpc: "2.0", ...message }),
  });
}

async function startSession(capabilities: object, claims: object = CALLERS.ann) {
  const clientInfo = { name: "test", version: "1" };
  const params = { protocolVersion: "2025-11-25", clientInfo, capabilities };
  const response = await post({ id: 1, method: "initialize", params }, {}, claims);
  await response.text();
  return response.headers.get("mcp-session-id");
}

test("a session belongs to its caller, and only clients that can be asked have one", async () => {
  expect(await startSession({})).toBe(null);
  expect(await startSession({ elicitation: { url: {} } })).toBe(null);
  const id = (await startSession({ elicitation: {} }))!;
  const list = { id: 2, method: "tools/list" };
  const status = async (session: string, ...others: [Record<string, string>?, object?]) =>
    (await post(list, { "Mcp-Session-Id": session, ...others[0] }, others[1])).status;
  expect(await status(id)).toBe(200);
  expect(await status(id, {}, CALLERS.bob)).toBe(404);
  expect(await status(id.replace("elicitation", "sampling"))).toBe(404);
  expect(await status(randomUUID())).toBe(404);
});

test("an answer counts only in the session that was asked, and few calls of a caller wait for one", async () => {
  const session = (await startSession({ elicitation: {} }))!;
  const ofBob = (await startSession({ elicitation: {} }, CALLERS.bob))!;
  const headers = { "Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25" };
  const leaves = new AbortController();
  const call = (id: number) =>
    post({ id, method: "tools/call", params: deleteTeam(1) }, headers, CALLERS.ann, leaves.signal);
  const waiting = await Promise.all(Array.from({ length: 20 }, (_, index) => call(index)));
  const asked = await readMessage(waiting[0]!);
  expect(asked).toMatchObject({ method: "elicitation/create" });
  const refused = await readMessage(await call(20));
  expect(refused.result).toMatchObject({ isError: true });
  expect(JSON.stringify(refused.result)).toContain("20 calls of this user wait for answers already");
  const accept = { id: asked.id, result: { action: "accept", content: {} } };
  const decline = { id: asked.id, result: { action: "decline" } };
  expect((await post(decline, { "Mcp-Session-Id": ofBob }, CALLERS.bob)).status).toBe(202);
  expect((await post(decline, { "Mcp-Session-Id": session }, CALLERS.bob)).status).toBe(404);
  expect((await post(accept, headers)).status).toBe(202);
  expect((await readMessage(waiting[0]!)).result).toMatchObject({ structuredContent: { count: 2 } });
  leaves.abort();
});

test("a call that is answered by a stream ends when its client cancels it, or leaves", async () => {
  const session = (await startSession({ elicitation: {} }))!;
  const headersOfAll = { Authorization: `Bearer ${tokenOf(CALLERS.ann)}`, "MCP-Protocol-Version": "2025-11-25" };
  const inSession = { ...headersOfAll, "Mcp-Session-Id": session };
  const cancel = (requestId: string, headers: Record<string, string>) =>
    post({ method: "notifications/cancelled", params: { requestId } }, headers);
  const running = async () => {
    const { rows } = await agents.owner.query(
      "select from pg_stat_activity where datname = current_database() and state = 'active' and query like '%wait%' and pid <> pg_backend_pid()",
    );
    return rows.length;
  };
  const wait = { name: "call_wait", arguments: { seconds: 600 }, _meta: { progressToken: 1 } };
  const stop = new AbortController();
  const start = async (id: string, headers: Record<string, string>) => {
    const response = await post({ id, method: "tools/call", params: wait }, headers, CALLERS.ann, stop.signal);
    await until(async () => (await running()) === 1);
    return response;
  };
  for (const headers of [headersOfAll, inSession]) {
    const response = await start("long", headers);
    await cancel("other", headers);
    expect(await running()).toBe(1);
    await cancel("long", headers);
    await until(async () => (await running()) === 0);
    expect(await response.text()).not.toContain("result");
  }

  const asking = await post({ id: "asks", method: "tools/call", params: deleteTeam(1) }, inSession);
  const asked = await readMessage(asking);
  await cancel("asks", inSession);
  expect((await readerOf(asking).next()).done).toBe(true);
  await post({ id: asked.id, result: { action: "accept", content: {} } }, inSession);
  expect(await titles()).toEqual(["a", "b", "c"]);

  await start("left", headersOfAll);
  stop.abort();
  await until(async () => (await running()) === 0);
});

const readers = new WeakMap<Response, AsyncIterator<string>>();

function readerOf(response: Response) {
  const chunks = readers.get(response) ?? response.body!.pipeThrough(new TextDecoderStream())[Symbol.asyncIterator]();
  readers.set(response, chunks);
  return chunks;
}

/** The next message of the stream. */
async function readMessage(response: Response) {
  const { value } = await readerOf(response).next();
  return JSON.parse(/^data: (.*)$/m.exec(value as string)![1]!) as { id: unknown; method?: string; result?: object };
}
