import { type Client, createClient as createSocket, type FormattedExecutionResult } from "graphql-ws";
import pg from "pg";
import { expect, test } from "vitest";
import { WebSocket } from "ws";
import { useFixture } from "../../fixture.ts";
import { serveGraphQL, tokenFor } from "../../graphql.ts";
import { applyJsonPatch } from "../../live/queries/apply-json-patch.ts";
import { makeRandom } from "../../live/queries/random.ts";
import { propertyRuns } from "../../property-runs.ts";
import { until } from "../../until.ts";

const SCHEMA = `
  create table public.rooms (id int primary key, name text, is_open bool not null);
  create table public.guests (room int references public.rooms on delete cascade, person text, primary key (room, person));
  create table public.letters (id int primary key, room int references public.rooms on delete set null, author text, body text);
  create function public.is_guest(wanted int) returns bool language sql stable security definer set search_path = ''
    begin atomic select exists (select from public.guests where room = wanted and person = auth.jwt() ->> 'sub'); end;
  grant execute on function public.is_guest to authenticated;
  alter table public.rooms enable row level security;
  alter table public.letters enable row level security;
  create policy of_guests on public.rooms for select using (is_open or public.is_guest(id));
  create policy of_room on public.letters for select using (
    author = (select auth.jwt() ->> 'sub') or exists (select from public.rooms r where r.id = room));
  create table public.moments (id int primary key, since timestamptz);
  alter table public.moments enable row level security;
  create policy of_past on public.moments for select using (since < now());
  create table public.notices (id int primary key, letter int references public.letters on delete cascade, title text);
  create function public.find_notices(title text) returns setof public.notices language sql stable
    begin atomic select * from public.notices n where n.title = find_notices.title; end;
  grant execute on function public.find_notices to authenticated;
  create table public.marks (id int primary key, "constructor" text, day date);
  create index on public.marks (day);
  create index on public.marks ("constructor");
  grant select on public.rooms, public.letters, public.moments, public.notices, public.marks to authenticated`;

const QUERIES = [
  "{ letters(orderBy: [{id: ASC}]) { totalCount edges { node { id body room { name } } } } }",
  "{ rooms(orderBy: [{id: ASC}]) { edges { node { id name letters(orderBy: [{id: ASC}]) { id author } } } } }",
  "{ letter(id: 1) { id body author } rooms(first: 1, orderBy: [{name: DESC}, {id: ASC}]) { edges { node { id } } } }",
];
const PEOPLE = [1, 2, 3];

const graphql = useFixture(() => serveGraphQL({ before: SCHEMA }));

type Result = FormattedExecutionResult<Record<string, unknown>>;

/** A client of graphql-ws that keeps `data`, by patches if it asks for them. */
class LiveClient {
  readonly results: string[] = [];
  readonly raw: Result[] = [];
  data: unknown;
  failure: unknown = null;
  isComplete = false;
  readonly #socket: Client;

  constructor(token: string, query: string, { patches = false, variables = {} } = {}) {
    this.#socket = createSocket({
      url: graphql.socketUrl,
      webSocketImpl: WebSocket,
      connectionParams: { Authorization: `Bearer ${token}` },
    });
    const extensions = patches ? { live: { patches } } : undefined;
    this.#socket.subscribe<Record<string, unknown>>(
      { query, variables, ...(extensions && { extensions }) },
      {
        next: (result) => this.#receive(result as Result),
        error: (error) => {
          this.failure = error;
        },
        complete: () => {
          this.isComplete = true;
        },
      },
    );
  }

  async untilData(expected: string): Promise<void> {
    await until(() => JSON.stringify(this.data) === expected);
  }

  close(): void {
    void this.#socket.dispose();
  }

  #receive(result: Result): void {
    this.raw.push(result);
    const patch = (result.extensions?.live as { patch?: never } | undefined)?.patch;
    this.data = patch ? applyJsonPatch(this.data, patch) : result.data;
    this.results.push(JSON.stringify(this.data));
  }
}

function randomStatement(random: (below: number) => number): string {
  const [room, id, person] = [1 + random(3), 1 + random(6), PEOPLE[random(3)]];
  return [
    `insert into public.rooms values (${room}, 'r${random(9)}', ${random(2) === 0}) on conflict (id) do update set name = excluded.name, is_open = excluded.is_open`,
    `insert into public.letters values (${id}, (select id from public.rooms where id = ${room}), '${person}', 'b${random(99)}')
      on conflict (id) do update set room = excluded.room, body = excluded.body, author = excluded.author`,
    `insert into public.guests select id, '${person}' from public.rooms where id = ${room} on conflict do nothing`,
    `delete from public.guests where person = '${person}' and room = ${room}`,
    `delete from public.letters where id = ${id}`,
    `delete from public.rooms where id = ${room}`,
  ][random(6)]!;
}

test("after random transactions each client has what its caller queries, and no result had anything else", async () => {
  const random = makeRandom(7);
  const readNow = async (query: string, token: string) => {
    const { data, errors } = await graphql.ask(query, { token });
    expect(errors).toBeUndefined();
    return JSON.stringify({ live: data });
  };
  const clients = PEOPLE.flatMap((person) =>
    QUERIES.map((query, nth) => {
      const token = tokenFor(person);
      const client = new LiveClient(token, `subscription { live ${query} }`, { patches: nth % 2 === 0 });
      return { token, query, states: new Set<string>(), client };
    }),
  );
  for (let step = 0; step < propertyRuns(400); step++) {
    const statements = Array.from({ length: 1 + random(3) }, () => randomStatement(random));
    await graphql
      .sql(["begin", ...statements, random(10) === 0 ? "rollback" : "commit"].join("; "))
      .catch(async (error) => {
        if (!(error instanceof pg.DatabaseError)) throw error;
        await graphql.sql("rollback");
      });
    await Promise.all(
      clients.map(async ({ token, query, states, client }) => {
        const expected = await readNow(query, token);
        states.add(expected);
        await client.untilData(expected);
      }),
    );
  }
  for (const { client, states, query } of clients) {
    // Before the first transaction the tables were empty.
    const foreign = client.results.slice(1).filter((result) => !states.has(result));
    expect({ query, foreign }).toEqual({ query, foreign: [] });
    client.close();
  }
  expect(clients.some(({ client }) => client.results.length > 10)).toBe(true);
});

const ANN = tokenFor("1");
const BOB = tokenFor("2");
const letter = (id: number, body: string) =>
  graphql.sql("insert into public.letters values ($1, null, '1', $2)", [id, body]);

test("aliases, fragments and variables are those of the query", async () => {
  await letter(101, "first");
  const query = `
    subscription One($id: ID!, $isLong: Boolean!) { ...Root }
    fragment Root on Subscription { mine: live { ...Letter } }
    fragment Letter on Query { letter(id: $id) { id body author @include(if: $isLong) } }`;
  const client = new LiveClient(ANN, query, { variables: { id: 101, isLong: false } });
  await client.untilData('{"mine":{"letter":{"id":"101","body":"first"}}}');
  await graphql.sql("update public.letters set body = 'second' where id = 101");
  await client.untilData('{"mine":{"letter":{"id":"101","body":"second"}}}');
  await graphql.sql("delete from public.letters where id = 101");
  await client.untilData('{"mine":{"letter":null}}');
  client.close();
});

test("an omitted filter does not narrow the followed rows, even if it has the name of a method of objects", async () => {
  const client = new LiveClient(ANN, "subscription { live { marks(filter: {}) { edges { node { id } } } } }");
  await client.untilData('{"live":{"marks":{"edges":[]}}}');
  await graphql.sql("insert into public.marks values (1, 'a')");
  await client.untilData('{"live":{"marks":{"edges":[{"node":{"id":"1"}}]}}}');
  client.close();
});

test("a query that does not run as one statement is live in one snapshot", async () => {
  await letter(102, "first");
  const query = "subscription { live { __schema { queryType { name } } letter(id: 102) { body } } }";
  const client = new LiveClient(ANN, query);
  const dataWith = (body: string) => `{"live":{"__schema":{"queryType":{"name":"Query"}},"letter":{"body":"${body}"}}}`;
  await client.untilData(dataWith("first"));
  await graphql.sql("update public.letters set body = 'second' where id = 102");
  await client.untilData(dataWith("second"));
  client.close();
});

test("callers of one result are told apart once its rows bring statements that depend on the caller", async () => {
  await letter(103, "secret");
  const query = `subscription { live { __schema { queryType { name } }
    findNotices(title: "x") { letter { body } } } }`;
  const [ann, bob] = [new LiveClient(ANN, query), new LiveClient(BOB, query)];
  const dataWith = (notices: string) =>
    `{"live":{"__schema":{"queryType":{"name":"Query"}},"findNotices":[${notices}]}}`;
  await Promise.all([ann.untilData(dataWith("")), bob.untilData(dataWith(""))]);
  await graphql.sql("insert into public.notices values (1, 103, 'x')");
  await ann.untilData(dataWith('{"letter":{"body":"secret"}}'));
  await bob.untilData(dataWith('{"letter":null}'));
  expect(JSON.stringify(bob.results)).not.toContain("secret");
  await graphql.sql("update public.letters set body = 'changed' where id = 103");
  await ann.untilData(dataWith('{"letter":{"body":"changed"}}'));
  ann.close();
  bob.close();
});

async function refusalOf(query: string, token = ANN): Promise<unknown> {
  const client = new LiveClient(token, query);
  await until(() => client.isComplete || client.failure !== null);
  client.close();
  return client.failure ?? client.raw.at(-1)?.errors;
}

test.each([
  ["a query that depends on the time", "{ moments { edges { node { id } } } }", "NOT_LIVE", "it depends on the time"],
  [
    "a filter by a time that passes",
    '{ marks(where: {day: {lte: "today"}}) { edges { node { id } } } }',
    "NOT_LIVE",
    "it depends on the time",
  ],
  ["an unknown field", "{ nothing }", "GRAPHQL_VALIDATION_FAILED", 'Cannot query field "nothing"'],
  [
    "a deep query",
    `{ rooms { edges { node { ${"letters { room { ".repeat(9)}id${" } }".repeat(9)} } } } }`,
    "QUERY_TOO_DEEP",
    "levels",
  ],
])("%s is refused as one that runs once, or with the reason", async (_what, selection, code, message) => {
  expect(await refusalOf(`subscription { live ${selection} }`)).toMatchObject([
    { message: expect.stringContaining(message), extensions: { code } },
  ]);
});

test("a query that the caller may not run any more ends with an error", async () => {
  const client = new LiveClient(ANN, "subscription { live { rooms { edges { node { name } } } } }");
  await until(() => client.results.length > 0);
  await graphql.sql("revoke select on public.rooms from authenticated");
  await until(() => client.isComplete);
  expect(client.raw.at(-1)).toMatchObject({ errors: [expect.anything()] });
  await graphql.sql("grant select on public.rooms to authenticated");
  client.close();
});
