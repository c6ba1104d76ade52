import { request as httpRequest } from "node:http";
import { describe, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { CALLERS, type CallerName, connect, rowsOf, serveAgents, textOf, tokenOf } from "./agents.ts";

const agents = useFixture(serveAgents);

const LIST = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });

/** Sends a request with any Host, which fetch refuses. */
function send(headers: Record<string, string>, { method = "POST", path = "/mcp", body = LIST } = {}) {
  return new Promise<{ status: number; challenge: string | undefined; body: string }>((resolve, reject) => {
    const options = {
      method,
      headers: { "Content-Type": "application/json", Accept: "application/json, text/event-stream", ...headers },
    };
    const sent = httpRequest(new URL(path, agents.address), options, async (response) => {
      let text = "";
      for await (const chunk of response) text += chunk;
      resolve({ status: response.statusCode!, challenge: response.headers["www-authenticate"], body: text });
    });
    sent.on("error", reject).end(body);
  });
}
const bearer = (claims: object) => ({ Authorization: `Bearer ${tokenOf(claims)}` });

test("without credentials, or with invalid ones, a client is told where to sign in", async () => {
  const metadata = `resource_metadata="${agents.service.url}/.well-known/oauth-protected-resource/mcp"`;
  expect(await send({})).toMatchObject({ status: 401, challenge: `Bearer ${metadata}` });
  expect(await send({ Authorization: "Bearer nonsense" })).toMatchObject({
    status: 401,
    challenge: `Bearer ${metadata}, error="invalid_token"`,
  });
  const inAddress = { path: `/mcp?apikey=${tokenOf(CALLERS.ann)}` };
  expect(await send({}, inAddress)).toMatchObject({ status: 401 });
  expect(await send({ Cookie: `sb-access-token=${tokenOf(CALLERS.ann)}` })).toMatchObject({ status: 401 });
  expect(await send(bearer(CALLERS.ann))).toMatchObject({ status: 200 });
  expect(await send({ apikey: tokenOf(CALLERS.anon) })).toMatchObject({ status: 200 });
});

test("other methods and paths are refused, and so are pages of other sites and names that point here", async () => {
  const ann = bearer(CALLERS.ann);
  expect(await send(ann, { method: "GET", body: "" })).toMatchObject({ status: 405 });
  expect(await send(ann, { method: "DELETE", body: "" })).toMatchObject({ status: 405 });
  expect(await send(ann, { path: "/mcp/sse" })).toMatchObject({ status: 404 });
  expect(await send({ ...ann, Origin: "https://evil.example" })).toMatchObject({ status: 403 });
  expect(await send({ ...ann, Host: "evil.example" })).toMatchObject({ status: 403 });
  expect(await send({ ...ann, Host: "evil.example", Origin: "http://evil.example" })).toMatchObject({ status: 403 });
  expect(await send({ ...ann, Host: "localhost:1" })).toMatchObject({ status: 200 });
  expect(await send({ ...ann, Origin: agents.service.url })).toMatchObject({ status: 200 });
  const error = await send(ann, { body: "{" });
  expect(error).toMatchObject({ status: 400 });
  expect(JSON.parse(error.body)).toMatchObject({ jsonrpc: "2.0", error: { code: -32700 } });
});

describe("scopes of a token of an application", () => {
  const toolsWith = async (scope: string) => {
    const { grantsOf } = await import("../../../rest-gateway/mcp/grants.ts");
    const grants = grantsOf({ claims: { oauth_grant_id: "1", scope } }, { mcp: "write", schemas: ["office"] });
    const [notes, teams] = ["notes", "teams"].map((name) => ({ schema: "office", name }));
    return [
      grants.mayRead(notes!),
      grants.mayWrite(notes!),
      grants.mayRead(teams!),
      grants.mayCall(true),
      grants.mayCall(false),
    ];
  };

  test("limit what its tools do", async () => {
    expect(await toolsWith("openid")).toEqual([false, false, false, false, false]);
    expect(await toolsWith("read")).toEqual([true, false, true, true, false]);
    expect(await toolsWith("write")).toEqual([true, true, true, true, true]);
    expect(await toolsWith("read:office.notes")).toEqual([true, false, false, false, false]);
    expect(await toolsWith("read:notes")).toEqual([true, false, false, false, false]);
    expect(await toolsWith("read:public.notes")).toEqual([false, false, false, false, false]);
    expect(await toolsWith("read write:office.notes")).toEqual([true, true, true, true, false]);
  });
});

/** The same actions by a tool and by the table interface. */
const ACTIONS: readonly { tool: string; given: object; method: string; path: string; body?: object }[] = [
  {
    tool: "read_notes",
    given: { columns: ["id", "title", "owner"] },
    method: "GET",
    path: "notes?select=id,title,owner&order=id",
  },
  { tool: "read_titles", given: {}, method: "GET", path: "titles?select=id,title" },
  { tool: "read_teams", given: {}, method: "GET", path: "teams?select=id,name&order=id" },
  {
    tool: "insert_notes",
    given: { rows: [{ title: "by a tool" }] },
    method: "POST",
    path: "notes?select=id,owner,title,team,size,public",
    body: [{ title: "by a tool" }],
  },
  {
    tool: "update_notes",
    given: { where: [{ column: "team", value: 2 }], set: { title: "changed" } },
    method: "PATCH",
    path: "notes?select=id,owner,title,team,size,public&team=eq.2",
    body: { title: "changed" },
  },
  {
    tool: "delete_notes",
    given: { where: [{ column: "team", value: 1 }] },
    method: "DELETE",
    path: "notes?select=id,owner,title,team,size,public&team=eq.1",
  },
  {
    tool: "insert_teams",
    given: { rows: [{ id: 9, name: "green" }] },
    method: "POST",
    path: "teams?select=id,name",
    body: [{ id: 9, name: "green" }],
  },
  { tool: "call_count_notes", given: {}, method: "POST", path: "rpc/count_notes", body: {} },
  { tool: "call_publish", given: { note: 1 }, method: "POST", path: "rpc/publish", body: { note: 1 } },
];

test("a token of an application acts at the resource that it was issued for, within its scopes", async () => {
  const issued = { ...CALLERS.ann, oauth_grant_id: "g1", client_id: "c1", scope: "read:notes" };
  const mine = { ...issued, aud: `${agents.service.url}/mcp` };
  const client = await connect(agents.address, mine);
  expect((await client.listTools()).tools.map(({ name }) => name)).toEqual(["read_notes"]);
  expect(rowsOf(await client.callTool({ name: "read_notes", arguments: {} })).length).toBeGreaterThan(0);
  await client.close();
  // A token is not passed through either: the table interface refuses this one, and /mcp one for the table interface.
  const table = await fetch(new URL("/rest/v1/notes?select=id", agents.service.url), { headers: bearer(mine) });
  expect(table.status).toBe(401);
  expect(await send(bearer({ ...issued, aud: agents.service.url }))).toMatchObject({ status: 401 });
  expect(await send(bearer({ ...issued, aud: "https://other.example/mcp" }))).toMatchObject({ status: 401 });
});

describe("the policy matrix", () => {
  const reset = () =>
    agents.owner.query(`truncate office.notes restart identity; delete from office.teams where id > 2;
      insert into office.notes (owner, title, team, public) values ('ann', 'a', 1, false), ('ann', 'b', 1, true), ('bob', 'c', 2, false), ('bob', 'd', 2, true)`);
  const state = async () =>
    (await agents.owner.query("select * from office.notes full join office.teams on team = teams.id order by 1")).rows;

  async function byTable(name: CallerName, { method, path, body }: (typeof ACTIONS)[number]) {
    const seen = name === "service" ? path.replace("size,public", "size,secret,public") : path;
    const response = await fetch(new URL(`/rest/v1/${seen}`, agents.service.url), {
      method,
      headers: { ...bearer(CALLERS[name]), "Content-Type": "application/json", Prefer: "return=representation" },
      body: body === undefined ? null : JSON.stringify(body),
    });
    const text = await response.text();
    const result = text === "" ? null : JSON.parse(text);
    return response.ok ? { result } : { code: result.code };
  }

  test.each(Object.keys(CALLERS) as CallerName[])("%s gets by tools what /rest/v1 gives", async (name) => {
    const client = await connect(agents.address, CALLERS[name]);
    const { tools } = await client.listTools();
    let refused = 0;
    for (const action of ACTIONS) {
      await reset();
      const expected = await byTable(name, action);
      const expectedState = await state();
      await reset();
      if (!tools.some((tool) => tool.name === action.tool)) {
        // A tool is missing only if nothing of it would be allowed.
        expect([action.tool, expected]).toEqual([action.tool, { code: "42501" }]);
        expect(await state()).toEqual(await reset().then(state));
        refused++;
        continue;
      }
      const result = await client.callTool({ name: action.tool, arguments: { ...action.given } });
      const isCall = action.tool.startsWith("call_");
      const actual = result.isError
        ? { code: /\((\w{5,})\)/.exec(textOf(result))?.[1] }
        : { result: isCall ? (result.structuredContent as { result: unknown }).result : rowsOf(result) };
      expect([action.tool, actual]).toEqual([action.tool, expected]);
      expect(await state()).toEqual(expectedState);
    }
    expect(refused > 0).toBe(
      name === "anon" || name === "ann" || name === "bob" || name === "administrator" || name === "service",
    );
    await client.close();
  });
});

test("tools that change something do not exist unless MCP=write, and other settings bound the calls", async () => {
  await using readers = await serveAgents({
    MCP: "read",
    MCP_MAX_ROWS: "2",
    MCP_MAX_BYTES: "1000",
    MCP_RATE_LIMIT: "6",
  });
  const client = await connect(readers.address, CALLERS.bob);
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toEqual(["call_count_notes", "read_notes", "read_teams", "read_titles"]);
  const call = (name: string, given: object) => client.callTool({ name, arguments: { ...given } });
  expect(await call("read_notes", {})).toMatchObject({ structuredContent: { next_offset: 2 } });
  expect(textOf(await call("read_notes", { limit: 3 }))).toBe("`limit` must be an integer, from 1 to 2.");
  await readers.owner.query(
    "alter table office.notes drop constraint notes_title_check; update office.notes set title = repeat('x', 1000)",
  );
  const tooLarge = await call("read_notes", {});
  expect(tooLarge.isError).toBe(true);
  expect(textOf(tooLarge)).toContain("more than 1000 bytes");
  await expect(async () => {
    for (let count = 0; count < 4; count++) await call("read_teams", {});
  }).rejects.toThrow();
  await client.close();
});

test("a database with many tables has few tools, which find the tables", async () => {
  const tables = Array.from(
    { length: 70 },
    (_, index) => `create table office.t${index} (id int primary key, value text);`,
  );
  const grants =
    "grant usage on schema office to authenticated; grant all on all tables in schema office to authenticated;";
  const sql = `create schema office; ${tables.join("\n")} comment on table office.t7 is 'Invoices of customers'; ${grants}`;
  await using many = await serveAgents({}, { sql });
  const client = await connect(many.address, CALLERS.ann);
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toEqual([
    ...[
      "call_function",
      "delete_rows",
      "describe",
      "insert_rows",
      "query_function",
      "read_rows",
      "search_catalogue",
      "update_rows",
    ],
  ]);
  const call = (name: string, given: object) => client.callTool({ name, arguments: { ...given } });
  expect(await call("search_catalogue", { query: "invoices" })).toMatchObject({
    structuredContent: { found: [{ schema: "office", name: "t7" }], next_offset: null },
  });
  expect(await call("describe", { name: "t7" })).toMatchObject({ structuredContent: { primary_key: ["id"] } });
  expect(rowsOf(await call("insert_rows", { table: "t7", rows: [{ id: 1, value: "a" }] }))).toEqual([
    { id: 1, value: "a" },
  ]);
  expect(rowsOf(await call("read_rows", { table: "t7", schema: "office" }))).toEqual([{ id: 1, value: "a" }]);
  expect(textOf(await call("read_rows", { table: "users" }))).toContain("Find names with search_catalogue");
  await client.close();
});

test("neither keys nor constraints name columns that the role may not see", async () => {
  const sql = `create schema office;
    create table office.rooms (secret_number int primary key, code text unique, name text);
    create table office.desks (
      secret_id int generated by default as identity primary key, seat text, secret_owner text,
      room int references office.rooms, code text references office.rooms (code),
      secret_room text references office.rooms (code),
      check (secret_owner <> seat), check (seat <> '')
    );
    create table office.seats (desk int, row int, secret int default 0, primary key (desk, row, secret));
    insert into office.desks (seat) values ('one');
    grant usage on schema office to authenticated, service_role;
    grant select (code, name) on office.rooms to authenticated;
    grant select (seat, room, code), insert (seat), update (seat) on office.desks to authenticated;
    grant select (desk, row) on office.seats to authenticated;
    grant select on all tables in schema office to service_role`;
  await using hiding = await serveAgents({}, { sql });
  const client = await connect(hiding.address, CALLERS.ann);
  const { tools } = await client.listTools();
  expect(tools.map(({ name }) => name)).toEqual([
    ...["insert_desks", "read_desks", "read_rooms", "read_seats", "update_desks"],
  ]);
  expect(tools.find(({ name }) => name === "insert_desks")!.description).toContain("Constraint: (seat <> ''::text)");
  expect(JSON.stringify(tools)).not.toContain("secret");
  const read = async (uri: string, as = client) => {
    const { contents } = await as.readResource({ uri });
    return JSON.parse((contents[0] as { text: string }).text);
  };
  const [desks, rooms, seats] = [
    await read("postgres://office/desks/schema"),
    await read("postgres://office/rooms/schema"),
    await read("postgres://office/seats/schema"),
  ];
  expect(desks).toMatchObject({
    primary_key: [],
    foreign_keys: [{ columns: ["code"], references: "office.rooms", referenced_columns: ["code"] }],
    constraints: ["(seat <> ''::text)"],
  });
  // A part of a key does not find one row.
  expect(seats).toMatchObject({ primary_key: [] });
  expect(JSON.stringify([desks, rooms, seats])).not.toContain("secret");
  await expect(read("postgres://office/desks/rows/1")).rejects.not.toThrow("secret");
  expect((await read("postgres://office/desks/rows")).rows).toMatchObject([{ seat: "one" }]);
  await client.close();

  const all = await connect(hiding.address, CALLERS.service);
  expect(await read("postgres://office/desks/schema", all)).toMatchObject({
    primary_key: ["secret_id"],
    foreign_keys: expect.arrayContaining([
      { columns: ["room"], references: "office.rooms", referenced_columns: ["secret_number"] },
    ]),
    constraints: expect.arrayContaining([expect.stringContaining("secret_owner")]),
  });
  expect((await read("postgres://office/desks/rows/1", all)).rows).toMatchObject([{ seat: "one" }]);
  await all.close();
});

test("/mcp does not exist unless it is enabled", async () => {
  await using off = await serveAgents({ MCP: "off" });
  expect((await fetch(off.address, { method: "POST", headers: bearer(CALLERS.ann), body: LIST })).status).toBe(404);
});
