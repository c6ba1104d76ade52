import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, expect, test } from "vitest";
import { isAfter, parseResumeToken, type StreamPosition } from "../../../realtime/changes/subscriber.ts";
import { useFixture } from "../../fixture.ts";
import { type Message, RawClient } from "../raw-client.ts";
import { openRealtimeFixture, token } from "../service.ts";

/** An expression that backtracks practically forever on texts that begin with s. */
const ENDLESS = String.raw`^s(.+)(.+)(.+)\1\2\3$|none`;
const SCHEMA = `
  create type public.odd as (data json);
  create table public.essays (id int primary key, owner text, body text, odd public.odd, price numeric);
  alter table public.essays enable row level security;
  create policy own on public.essays for select using (owner = (select auth.jwt() ->> 'sub') or owner = 'all');
  create table public.flashes (id int primary key, word text);
  grant select on public.essays, public.flashes to anon, authenticated`;
const ESSAYS = { event: "*", schema: "public", table: "essays" };
const FLASHES = { event: "*", schema: "public", table: "flashes" };

const clients: RawClient[] = [];
let last = 0;

const fixture = useFixture(() => openRealtimeFixture(SCHEMA, { REALTIME_CHECK_TIMEOUT_SECONDS: "1" }));
afterEach(() => Promise.all(clients.splice(0).map((client) => client.close())));

async function open(claims: object): Promise<RawClient> {
  const client = await new RawClient(fixture.service.url, { key: token(claims) }).opened();
  clients.push(client);
  return client;
}

const openAda = () => open({ role: "authenticated", sub: "ada" });

/** Joins, and returns the result of the subscription. */
async function subscribe(client: RawClient, topic: string, ...bindings: object[]): Promise<string> {
  const { length } = client.items;
  await client.join(topic, { postgres_changes: bindings });
  const result = await client.until((item) => client.items.indexOf(item) >= length && isSystem(item, topic));
  return result.payload.status;
}

function isSystem({ topic, event }: Message, of: string): boolean {
  return topic === of && event === "system";
}

async function write(begins: string, owner: string): Promise<number> {
  const id = ++last;
  const body = "$3 || (select string_agg(md5(n::text), '') from generate_series(1, 60) n)";
  await fixture.owner.query(`insert into essays values ($1, $2, ${body}, row('{}'), 7)`, [id, owner, begins]);
  return id;
}

const idsIn = (client: RawClient, table = "essays") =>
  client.items.flatMap(({ payload }) => (payload.data?.table === table ? [payload.data.record.id] : []));
const isLost = ({ event }: Message) => event === "phx_error";

test.each([
  ["takes for ever", `body=match.${ENDLESS}`, /a filter on essays takes too long, and is suspended for a minute/],
  ["fails", "odd=lt.({})", /a filter on essays fails \(.+\), and is suspended for a minute/],
])(
  "a filter that %s is reported where the row is visible, and not where it is hidden",
  async (_how, filter, reason) => {
    const ada = await openAda();
    expect(await subscribe(ada, "realtime:x", { ...ESSAYS, filter }, FLASHES)).toBe("ok");
    await write("s", "bob");
    await fixture.owner.query("insert into flashes values ($1)", [++last]);
    await ada.until(({ payload }) => payload.data?.record.id === last);
    expect(ada.items.filter(isLost)).toEqual([]);

    await write("s", "ada");
    await ada.until(isLost);
    const result = ada.items.find((item) => isSystem(item, "realtime:x") && item.payload.status === "error");
    expect(result!.payload.message).toMatch(reason);
  },
);

test("a filter that has failed is suspended for its socket for a while, and for no other", async () => {
  const [ada, again] = [await openAda(), await openAda()];
  const endless = { ...ESSAYS, filter: `body=match.${ENDLESS}|more` };
  await subscribe(ada, "realtime:x", endless);
  await write("s", "ada");
  await ada.until(isLost);
  expect(await subscribe(ada, "realtime:x", endless)).toBe("error");
  expect(await subscribe(ada, "realtime:x", { ...ESSAYS, filter: "body=match.^s" })).toBe("ok");
  expect(await subscribe(again, "realtime:x", endless)).toBe("ok");
});

test("while a new token waits for filters, no position is ahead of what was sent", async () => {
  const [slow, other] = [await openAda(), await openAda()];
  await subscribe(slow, "realtime:x", { ...ESSAYS, filter: `body=match.${ENDLESS}|token` });
  await subscribe(other, "realtime:x", ESSAYS);
  const id = await write("s", "ada");
  const { payload } = await other.until(({ payload }) => payload.data?.record.id === id);
  const unsent = parseResumeToken(payload.data.position)!.position;
  slow.say("realtime:x", "access_token", { access_token: token({ role: "authenticated", sub: "ada", renewed: true }) });
  const positions: StreamPosition[] = [];
  while (!slow.items.some(isLost)) {
    const { response } = (await slow.reply(slow.say("phoenix", "heartbeat", {}))).payload;
    if (response.position !== undefined) positions.push(parseResumeToken(response.position)!.position);
    await sleep(20);
  }
  expect(positions).not.toEqual([]);
  expect(positions.filter((position) => !isAfter(unsent, position))).toEqual([]);
});

test("filters that never end delay only the subscribers that use them", async () => {
  const hostile = await openAda();
  const bindings = Array.from({ length: 10 }, (_, at) => ({ ...ESSAYS, filter: `body=match.${ENDLESS}|${at}` }));
  for (const [at, binding] of bindings.entries())
    expect(await subscribe(hostile, `realtime:${at}`, binding)).toBe("ok");
  const [ada, anon] = [await openAda(), await open({ role: "anon" })];
  for (const client of [ada, anon])
    await subscribe(client, "realtime:x", ESSAYS, { ...FLASHES, filter: "word=like.fl%" });
  // Each takes a second at least, one after the other.
  const id = await write("s", "all");
  await fixture.owner.query("insert into flashes values ($1, 'flash')", [++last]);
  for (const client of [ada, anon]) {
    await client.until(({ payload }) => payload.data?.record.id === id);
    await client.until(({ payload }) => payload.data?.record.id === last);
  }
  expect(hostile.items.filter(isLost).length).toBeLessThan(bindings.length);
  for (const at of bindings.keys()) await hostile.until((item) => isLost(item) && item.topic === `realtime:${at}`);
});

test("a channel receives changes in commit order, whichever of its filters Postgres evaluates", async () => {
  const client = await openAda();
  await subscribe(client, "realtime:x", { ...ESSAYS, filter: "body=like.%5%,price=gt.1" }, FLASHES);
  const written: number[] = [];
  for (let nth = 0; nth < 40; nth++) {
    if (nth % 3 === 0) written.push(await write("b", "ada"));
    else {
      written.push(++last);
      await fixture.owner.query("insert into flashes values ($1)", [last]);
    }
  }
  await client.until(({ payload }) => payload.data?.record.id === last);
  const result = client.items.flatMap(({ payload }) => (payload.data ? [payload.data.record.id] : []));
  expect(result).toEqual(written);
});

test.each([
  { rows: 6_000, bytes: 1 },
  { rows: 400, bytes: 20_000 },
])(
  "$rows changes of $bytes bytes at once do not overflow the backlog of a subscriber whose filters Postgres evaluates",
  async ({ rows, bytes }) => {
    const client = await openAda();
    await subscribe(client, "realtime:x", { ...FLASHES, filter: "word=like.x%" });
    const ids = Array.from({ length: rows }, () => ++last);
    await fixture.owner.query(
      "insert into flashes select n, repeat('x', $3) || n from generate_series($1::int, $2::int) n",
      [ids[0], last, bytes],
    );
    await fixture.owner.query("insert into flashes values ($1, 'x')", [++last]);
    await client.until((item) => isLost(item) || item.payload.data?.record.id === last);
    expect(client.items.filter(isLost)).toEqual([]);
    expect(idsIn(client, "flashes")).toEqual([...ids, last]);
  },
);

test.each([
  ["like.%ab%", "ok"],
  [String.raw`match.^[a-f]+(\d|x)*$`, "ok"],
  [`ilike.%${"a".repeat(100)}%`, "error"],
  [`imatch.${"a".repeat(101)}`, "error"],
  [String.raw`match.(.+)\1`, "error"],
  ["match.(a{9}){9}", "error"],
  ["match.(?i)a", "error"],
])("an anonymous caller's filter %s is: %s; a signed-in caller may use any", async (filter, expected) => {
  const [anon, ada] = [await open({ role: "anon" }), await openAda()];
  const binding = { ...FLASHES, filter: `word=${filter}` };
  expect(await subscribe(anon, "realtime:x", binding)).toBe(expected);
  expect(await subscribe(ada, "realtime:x", binding)).toBe("ok");
});
