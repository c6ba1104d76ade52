import { afterEach, describe, expect, test } from "vitest";
import { type ChannelStatus, RealtimeClient, type ReceivedChange } from "../../../studio/api/realtime.ts";
import { useFixture } from "../../fixture.ts";
import { Detour } from "../../realtime/detour.ts";
import { Inbox } from "../../realtime/inbox.ts";
import { openRealtimeFixture, token } from "../../realtime/service.ts";

const NEWS = { event: "*", schema: "public", table: "news" } as const;
const NOTES = { event: "*", schema: "public", table: "notes" } as const;

const clients: RealtimeClient[] = [];

const fixture = useFixture(openRealtimeFixture);
afterEach(() => {
  for (const client of clients.splice(0)) client.close();
});

function open(currentToken: () => string | null, address = fixture.service.url.replace("http", "ws")): RealtimeClient {
  const client = new RealtimeClient({ address, token: currentToken, retryDelay: () => 20 });
  clients.push(client);
  return client;
}

function subscribe(client: RealtimeClient, subscription: Parameters<RealtimeClient["subscribe"]>[0][number]) {
  const changes = new Inbox<ReceivedChange>();
  const statuses = new Inbox<ChannelStatus>();
  const leave = client.subscribe([subscription], { onChange: changes.put, onStatus: statuses.put });
  return { changes, statuses, leave };
}

const isState = (state: ChannelStatus["state"]) => (status: ChannelStatus) => status.state === state;
const authenticated = (sub: string, more: object = {}) => token({ role: "authenticated", sub, ...more });

describe("a subscription", () => {
  test("receives changes, whose numbers have all digits", async () => {
    const { changes, statuses } = subscribe(
      open(() => authenticated("a")),
      NEWS,
    );
    await statuses.until(isState("joined"));
    await fixture.owner.query("insert into news (id, title, price) values (1, '<b>', 12345678901234567890.10)");
    const change = await changes.until(() => true);
    expect(change).toMatchObject({
      type: "INSERT",
      record: { id: "1", title: "<b>", price: "12345678901234567890.10" },
    });
    await fixture.owner.query("delete from news");
  });

  test("can be one for the keys only", async () => {
    const { changes, statuses } = subscribe(
      open(() => authenticated("a")),
      { ...NEWS, select: [] },
    );
    await statuses.until(isState("joined"));
    await fixture.owner.query("insert into news (id, title) values (2, 'x')");
    expect((await changes.until(() => true)).record).toEqual({ id: "2" });
    await fixture.owner.query("delete from news");
  });

  test("says that changes are not delivered, as those of a table that is not published", async () => {
    await fixture.owner.query("alter publication supabase_realtime drop table public.news");
    const { statuses } = subscribe(
      open(() => authenticated("a")),
      NEWS,
    );
    const status = await statuses.until(isState("refused"));
    expect(status).toMatchObject({ reason: expect.stringContaining("Unable to subscribe") });
    await fixture.owner.query("alter publication supabase_realtime add table public.news");
  });

  test("that is left receives nothing, while another one does", async () => {
    const client = open(() => authenticated("a"));
    const [left, kept] = [subscribe(client, NEWS), subscribe(client, NEWS)];
    await Promise.all([left, kept].map(({ statuses }) => statuses.until(isState("joined"))));
    left.leave();
    await fixture.owner.query("insert into news (id) values (3)");
    await kept.changes.until(() => true);
    expect(left.changes.items).toEqual([]);
    await fixture.owner.query("delete from news");
  });
});

describe("the token of the caller", () => {
  test("is renewed without missing a change, although a socket ends with its token", async () => {
    const detour = await Detour.to(fixture.service.url);
    let current = authenticated("a", { exp: Math.floor(Date.now() / 1000) + 2 });
    const client = open(() => current, detour.url.replace("http", "ws"));
    const { changes, statuses } = subscribe(client, NEWS);
    await statuses.until(isState("joined"));
    current = authenticated("a");
    await statuses.until(isState("interrupted"));
    await fixture.owner.query("insert into news (id) values (4)");
    expect((await changes.until(() => true)).record).toMatchObject({ id: "4" });
    client.renewToken();
    await fixture.owner.query("insert into news (id) values (5)");
    await changes.until(({ record }) => record?.id === "5");
    await fixture.owner.query("delete from news");
    client.close();
    await detour.close();
  });

  test("decides which rows are sent, and after a change of the caller the other one's", async () => {
    let caller = "a";
    const client = open(() => authenticated(caller));
    const { changes, statuses } = subscribe(client, NOTES);
    await statuses.until(isState("joined"));
    caller = "b";
    const joined = statuses.items.filter(isState("joined")).length;
    client.changeCaller();
    while (statuses.items.filter(isState("joined")).length === joined) await statuses.count(statuses.items.length + 1);
    await fixture.owner.query("insert into notes (owner, body) values ('a', 'of a'), ('b', 'of b')");
    const change = await changes.until(() => true);
    expect(change.record).toMatchObject({ owner: "b", body: "of b" });
    expect(changes.items).toHaveLength(1);
  });

  test("is awaited: without one no socket is opened", async () => {
    let current: string | null = null;
    const { statuses } = subscribe(
      open(() => current),
      NEWS,
    );
    current = authenticated("a");
    await statuses.until(isState("joined"));
  });
});

test("a lost connection is made again, and nothing is missed meanwhile", async () => {
  const detour = await Detour.to(fixture.service.url);
  const client = open(() => authenticated("a"), detour.url.replace("http", "ws"));
  const { changes, statuses } = subscribe(client, NEWS);
  await statuses.until(isState("joined"));
  detour.leadTo("http://127.0.0.1:1");
  detour.cut();
  await statuses.until(isState("interrupted"));
  await fixture.owner.query("insert into news (id) values (6)");
  detour.leadTo(fixture.service.url);
  await changes.until(({ record }) => record?.id === "6");
  await fixture.owner.query("delete from news");
  client.close();
  await detour.close();
});
