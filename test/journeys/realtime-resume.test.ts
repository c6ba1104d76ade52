import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, describe, expect, test } from "vitest";
import { resuming } from "../../realtime/resuming-socket.ts";
import { useFixture } from "../fixture.ts";
import { startGateway, stopped } from "../program.ts";
import { Inbox } from "../realtime/inbox.ts";
import { type Message, type Payload, RawClient } from "../realtime/raw-client.ts";
import { anonKey, type Client, makeClient, openRealtimeFixture, subscribed, token } from "../realtime/service.ts";
import { serve } from "../serve.ts";
import { until } from "../until.ts";

const NEWS = { postgres_changes: [{ event: "INSERT", schema: "public", table: "news" }] };

/** The full size, 100,000, takes a minute of two cores, most of it for the clients; `npm run bench -- realtime` shows it. */
const ROWS = Number(process.env.REALTIME_ROWS ?? 10_000);
const SUBSCRIBERS = 50;
/** Several times as many bytes as may wait for one client. */
const SAID = 15_000;

const clients: Client[] = [];

const fixture = useFixture(openRealtimeFixture);
const other = useFixture(() => serve(fixture.database));
afterEach(async () => {
  for (const client of clients.splice(0)) await client.realtime.disconnect();
  await run("delete from news");
});

const run = (statement: string) => fixture.owner.query(statement);
const idsOf = ({ items }: RawClient) =>
  items.filter(({ event }) => event === "postgres_changes").map(({ payload }) => payload.data.record.id as number);
const upTo = (last: number, first = 1) => Array.from({ length: last - first + 1 }, (_, at) => at + first);
const insert = (first: number, last: number) =>
  run(`insert into news (id) select n from generate_series(${first}, ${last}) as n`);

/** Ends the gateways' connections to the stream, as a crash of the server would. */
const cutStreams = () =>
  run(
    "select pg_terminate_backend(active_pid) from pg_replication_slots where active and database = current_database()",
  );

/** Resolves when so many changes have come, each behind the one before. */
function inOrder(socket: RawClient["socket"], count: number): Promise<void> {
  return new Promise((resolve, reject) => {
    let next = 1;
    socket.removeAllListeners("message");
    socket.on("message", (data: Buffer) => {
      const id = Number(/"record":\{"id":(\d+)/.exec(data.toString())?.[1]);
      if (id === next) next++;
      // Messages about the join may still be on their way.
      else if (!Number.isNaN(id)) reject(new Error(`${id} came in place of ${next}`));
      if (next > count) resolve();
    });
    socket.on("close", (code) => reject(new Error(`Closed with code ${code} before ${next}`)));
  });
}

async function residentMebibytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, "utf8");
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)![1]) / 1024;
}

/** Collects all inserts that a client receives, whatever becomes of its sockets. */
async function listening(transport: typeof WebSocket, { url = fixture.service.url, version = "2.0.0" } = {}) {
  const client = makeClient(url, null, transport, version);
  clients.push(client);
  const ids: number[] = [];
  const result = new Inbox<number>();
  const system = new Inbox<{ status: string; message: string }>();
  const channel = client
    .channel("news")
    .on("postgres_changes", { event: "INSERT", schema: "public", table: "news" }, ({ new: row }) => {
      ids.push(row.id);
      result.put(row.id);
    })
    .on("system", {}, system.put);
  await subscribed(channel);
  return { ids, told: result, system };
}

describe("a client that resumes from its last position", () => {
  test("misses and repeats nothing, at another gateway too", async () => {
    const first = await new RawClient(fixture.service.url).opened();
    const { payload } = await first.join("realtime:news", NEWS);
    expect(payload.response.position).toMatch(/^[\dA-F]+\/[\dA-F]+/);
    await insert(1, 3);
    const last = await first.until((message) => message.payload.data?.record.id === 2);
    first.socket.terminate();
    await insert(4, 5);
    const second = await new RawClient(other.url).opened();
    await second.join("realtime:news", { ...NEWS, resume: last.payload.data.position });
    await second.until((message) => message.payload.data?.record.id === 5);
    await insert(6, 6);
    await second.until((message) => message.payload.data?.record.id === 6);
    expect(idsOf(second)).toEqual([3, 4, 5, 6]);
    await second.close();
  });

  test("misses nothing and is checked by its new token if it sends one immediately", async () => {
    const first = await new RawClient(fixture.service.url).opened();
    const { payload } = await first.join("realtime:news", NEWS);
    first.socket.terminate();
    await insert(1, 2);
    const second = await new RawClient(fixture.service.url).opened();
    const access_token = token({ role: "authenticated", sub: "1" });
    const config = { ...NEWS, resume: payload.response.position };
    const ref = second.say("realtime:news", "phx_join", { config });
    second.say("realtime:news", "access_token", { access_token });
    await second.reply(ref);
    await second.until((message) => message.payload.data?.record.id === 2);
    await insert(3, 3);
    await second.until((message) => message.payload.data?.record.id === 3);
    expect(idsOf(second)).toEqual([1, 2, 3]);
    // No subscription of the old token is left behind.
    await second.reply(second.say("realtime:news", "phx_leave", {}));
    await second.join("realtime:more", NEWS);
    await insert(4, 4);
    await second.until((message) => message.topic === "realtime:more" && message.payload.data?.record.id === 4);
    expect(idsOf(second)).toEqual([1, 2, 3, 4]);
    await second.close();
  });

  test("receives its position in the heartbeat, while its table has no changes", async () => {
    const client = await new RawClient(fixture.service.url).opened();
    await client.join("realtime:news", NEWS);
    await run("update users set name = name");
    const beat = await client.reply(client.say("phoenix", "heartbeat", {}));
    expect(beat.payload).toEqual({
      status: "ok",
      response: { position: expect.stringMatching(/^[\dA-F]+\/[\dA-F]+/) },
    });
    await client.close();
  });

  test("misses nothing because another one resumes at the same time from a position that is too old", async () => {
    const first = await new RawClient(fixture.service.url).opened();
    const { position } = (await first.join("realtime:news", NEWS)).payload.response;
    first.socket.terminate();
    await insert(1, 3);
    const second = await new RawClient(fixture.service.url).opened();
    const resume = (topic: string, from: string) =>
      second.say(topic, "phx_join", { config: { ...NEWS, resume: from } });
    resume("realtime:old", position.replace(/^[^@]+/, "0/1"));
    resume("realtime:news", position);
    const { payload } = await second.until(({ event, payload }) => event === "system" && payload.status === "error");
    expect(payload).toMatchObject({ channel: "old", message: expect.stringMatching(/ are no longer kept/) });
    const isSettled = ({ topic, event, payload }: Message) =>
      topic === "realtime:news" && (event === "phx_error" || payload.data?.record.id === 3);
    await second.until(isSettled);
    expect(idsOf(second)).toEqual([1, 2, 3]);
    await second.close();
  });

  test("of another history of the database is notified of a gap", async () => {
    const first = await new RawClient(fixture.service.url).opened();
    const { position } = (await first.join("realtime:news", NEWS)).payload.response;
    await first.close();
    await insert(1, 1);
    // The history changes when a standby is promoted that had not come so far, or a backup is restored.
    const [place, history] = position.split("@");
    const elsewhere = `${place}@${history.replace(/^./, (digit: string) => (digit === "0" ? "1" : "0"))}`;
    for (const resume of [elsewhere, place]) {
      const second = await new RawClient(fixture.service.url).opened();
      await second.join("realtime:news", { ...NEWS, resume });
      const { message } = (await second.until(({ payload }) => payload.status === "error")).payload;
      expect(message).toMatch(/^Changes may have been missed: the position is from another database/);
      expect(idsOf(second)).toEqual([]);
      await second.close();
    }
    const third = await new RawClient(fixture.service.url).opened();
    await third.join("realtime:news", { ...NEWS, resume: position });
    await third.until((message) => message.payload.data?.record.id === 1);
    await third.close();
  });

  test("receives a value from before its column was altered as a text", async () => {
    await run(`create table public.things (id int primary key, mark text, data text);
      alter table public.things replica identity full; grant select on public.things to anon`);
    const THINGS = { postgres_changes: [{ event: "*", schema: "public", table: "things" }] };
    const first = await new RawClient(fixture.service.url).opened();
    const { payload } = await first.join("realtime:things", THINGS);
    await first.close();
    await run(`insert into things values (1, '007', '{"a": 1}'), (2, '8', '1}]')`);
    await run(`alter table things alter column mark type int using mark::int;
      update things set data = '0'; alter table things alter column data type jsonb using data::jsonb;
      insert into things values (3, 9, '{"b": 2}')`);
    const again = await new RawClient(fixture.service.url).opened();
    await again.join("realtime:things", { ...THINGS, resume: payload.response.position });
    await again.until(({ payload }) => payload.data?.record?.id === 3);
    const result = again.items.flatMap(({ payload }) => payload.data ?? []);
    expect(result.map(({ record }) => record)).toEqual([
      { id: 1, mark: "007", data: '{"a": 1}' },
      { id: 2, mark: "8", data: "1}]" },
      { id: 1, mark: 7, data: "0" },
      { id: 2, mark: 8, data: "0" },
      { id: 3, mark: 9, data: { b: 2 } },
    ]);
    expect(result[0].columns[1]).toEqual({ name: "mark", type: "text" });
    await again.close();

    const choosy = await new RawClient(fixture.service.url).opened();
    const sevens = { postgres_changes: [{ ...THINGS.postgres_changes[0], filter: "mark=eq.7" }] };
    await choosy.join("realtime:things", { ...sevens, resume: payload.response.position });
    const { message } = (await choosy.until(({ payload }) => payload.status === "error")).payload;
    expect(message).toMatch(/^Changes may have been missed: the table things was altered/);
    await choosy.close();
    await run("drop table things");
  });

  test("does not take a heartbeat for the state of a channel that was refused on rejoining", async () => {
    const Socket = resuming(WebSocket);
    const open = async () => {
      const socket = new Socket(`${fixture.service.url.replace("http", "ws")}/realtime/v1/websocket?apikey=${anonKey}`);
      const result = new Inbox<{ topic: string; event: string; ref: string; payload: Payload }>();
      socket.addEventListener("message", ({ data }) => result.put(JSON.parse(data)));
      await new Promise((resolve) => socket.addEventListener("open", resolve));
      let last = 0;
      const say = (topic: string, event: string, payload: object) => {
        const ref = String(++last);
        socket.send(JSON.stringify({ topic, event, payload, ref }));
        return result.until((message) => message.event === "phx_reply" && message.ref === ref);
      };
      const join = (topic: string, more: object = {}) => say(topic, "phx_join", { config: NEWS, ...more });
      return { socket, told: result, say, join };
    };
    const first = await open();
    await Promise.all(["realtime:a", "realtime:b"].map((topic) => first.join(topic)));
    first.socket.close();
    await insert(1, 1);
    const second = await open();
    expect((await second.join("realtime:a", { access_token: "expired" })).payload.status).toBe("error");
    await second.join("realtime:b");
    await second.told.until(({ topic, event }) => topic === "realtime:b" && event === "postgres_changes");
    expect((await second.say("phoenix", "heartbeat", {})).payload.response.position).toBeDefined();
    await second.join("realtime:a");
    await insert(2, 2);
    const { payload } = await second.told.until(({ topic, payload }) => topic === "realtime:a" && payload.data);
    expect(payload.data.record.id).toBe(1);
    second.socket.close();
  });

  test("is notified if its position is no longer known, and rejoins without it", async () => {
    const client = await new RawClient(fixture.service.url).opened();
    await client.join("realtime:news", { ...NEWS, resume: "0/1" });
    const result = await client.until(({ event, payload }) => event === "system" && payload.status === "error");
    expect(result.payload).toMatchObject({ extension: "postgres_changes", message: expect.stringContaining("missed") });
    await client.until(({ event }) => event === "phx_error");
    await client.close();
  });

  test.each(["2.0.0", "1.0.0"])(
    "misses nothing with supabase-js either, while its sockets and the stream are interrupted, in version %s",
    async (version) => {
      const sockets: WebSocket[] = [];
      class Watched extends WebSocket {
        constructor(...address: ConstructorParameters<typeof WebSocket>) {
          super(...address);
          sockets.push(this);
        }
      }
      const { ids, told: result } = await listening(resuming(Watched as typeof WebSocket), { version });
      for (let batch = 0; batch < 20; batch++) {
        await insert(batch * 100 + 1, batch * 100 + 100);
        if (batch % 5 === 2) sockets.at(-1)!.close();
        if (batch % 5 === 4) await cutStreams();
        await sleep(20);
      }
      await result.until((id) => id === 2_000);
      expect(ids).toEqual(upTo(2_000));
    },
  );
});

describe("a client that does not resume", () => {
  test("misses nothing while the stream is interrupted and resumed", async () => {
    const { ids, told: result, system } = await listening(WebSocket);
    for (let batch = 0; batch < 10; batch++) {
      await insert(batch * 100 + 1, batch * 100 + 100);
      if (batch % 3 === 1) await cutStreams();
    }
    await result.until((id) => id === 1_000);
    expect(ids).toEqual(upTo(1_000));
    expect(system.items.filter(({ status }) => status === "error")).toEqual([]);
  });

  test("is notified of a gap, and joins again", async () => {
    const { told: result, system } = await listening(WebSocket);
    // The log that a stream would go on from is gone.
    await run(`do $$ begin
      for attempt in 1..500 loop
        perform pg_terminate_backend(active_pid) from pg_replication_slots
          where active and database = current_database();
        begin
          perform pg_drop_replication_slot(slot_name) from pg_replication_slots where database = current_database() and not active;
        exception when object_in_use or undefined_object then null;
        end;
        exit when not exists (select from pg_replication_slots where database = current_database());
      end loop;
    end $$`);
    await insert(1, 10);
    const said = await system.until(({ status }) => status === "error");
    expect(said.message).toContain("may have been missed");
    await until(() => system.items.filter(({ status }) => status === "ok").length >= 2);
    await insert(11, 11);
    await result.until((id) => id === 11);
  });
});

test("without a stream is refused with the reason, and can join when there is one again", async () => {
  const client = await new RawClient(fixture.service.url).opened();
  const joinUntil = async (status: string) => {
    let result: Payload;
    await until(async () => {
      result = (await client.join("realtime:news", NEWS)).payload;
      return result.status === status;
    });
    return result;
  };
  await client.join("realtime:news", NEWS);
  await run("alter publication supabase_realtime rename to put_aside");
  await cutStreams();
  const refusal = await joinUntil("error");
  expect(refusal.response.reason).toBe(
    "RealtimeDisabledForConfiguration: Changes are not streamed: the database has no publication supabase_realtime.",
  );
  await run("alter publication put_aside rename to supabase_realtime");
  await joinUntil("ok");
  await insert(1, 1);
  await client.until(({ payload }) => payload.data?.record.id === 1);
  await client.close();
});

describe("a large transaction", () => {
  test(`with an UPDATE of ${ROWS} rows reaches ${SUBSCRIBERS} subscribers, in order, and memory stays bounded`, async () => {
    await run(`create table sheets (id int primary key, owner text, body text);
      alter table sheets enable row level security;
      grant select on sheets to authenticated;
      create policy own_and_shared on sheets for select using (owner is null or owner = (select auth.jwt() ->> 'sub'));
      insert into sheets (id, body) select n, repeat('x', 100) from generate_series(1, ${ROWS}) as n`);
    const gateway = await startGateway(fixture.database);
    const sheets = { postgres_changes: [{ event: "UPDATE", schema: "public", table: "sheets" }] };
    const raw: RawClient[] = [];
    const received: Promise<void>[] = [];
    for (let number = 0; number < SUBSCRIBERS; number++) {
      const key = token({ role: "authenticated", sub: String(number % 5) });
      const client = await new RawClient(gateway.url, { key }).opened();
      expect((await client.join("realtime:sheets", sheets)).payload.status).toBe("ok");
      raw.push(client);
      received.push(inOrder(client.socket, ROWS));
    }
    const before = await residentMebibytes(gateway.child.pid!);
    let most = before;
    const watch = setInterval(async () => {
      most = Math.max(most, await residentMebibytes(gateway.child.pid!));
    }, 50);
    const startedAt = performance.now();
    await run("update sheets set body = body || '!'");
    await Promise.all(received);
    clearInterval(watch);
    const seconds = (performance.now() - startedAt) / 1000;
    console.log(
      `${ROWS} × ${SUBSCRIBERS} in ${seconds.toFixed(1)} s; the gateway held ${before.toFixed(0)} MiB, then ${most.toFixed(0)} at most`,
    );
    expect(most - before).toBeLessThan(400);
    for (const client of raw) await client.close();
    await stopped(gateway, "SIGTERM");
    await run("drop table sheets");
  });

  test(`with ${SAID} messages reaches all clients that read, in order`, async () => {
    const gateway = await startGateway(fixture.database);
    const client = await new RawClient(gateway.url, { version: "1.0.0" }).opened();
    await client.join("realtime:room");
    await run(`select realtime.send(jsonb_build_object('n', n, 'text', repeat('x', 500)), 'count', 'room', false)
      from generate_series(1, ${SAID}) as n`);
    await Promise.race([
      client.until(({ payload }) => payload.payload?.n === SAID),
      once(client.socket, "close").then(([code]) => Promise.reject(new Error(`Closed with code ${code}`))),
    ]);
    const result = client.items.filter(({ event }) => event === "broadcast");
    expect(result.map(({ payload }) => payload.payload.n)).toEqual(upTo(SAID));
    await client.close();
    await stopped(gateway, "SIGTERM");
  });

  test("disconnects a client that does not read with the reason, and the others receive all changes", async () => {
    const { realtime } = fixture.service;
    const { overwhelmed } = realtime.statistics();
    const reads = await new RawClient(fixture.service.url).opened();
    const sleeps = await new RawClient(fixture.service.url).opened();
    await Promise.all([reads, sleeps].map((client) => client.join("realtime:news", NEWS)));
    const closed = new Promise<number>((resolve) => sleeps.socket.once("close", resolve));
    sleeps.socket.pause();
    await run("insert into news (id, title) select n, repeat('x', 1000) from generate_series(1, 20000) as n");
    await until(() => realtime.statistics().overwhelmed > overwhelmed);
    expect(realtime.statistics().channels).toBe(1);
    sleeps.socket.resume();
    expect(await closed).toBe(1013);
    expect(idsOf(sleeps)).toEqual(upTo(idsOf(sleeps).length));
    await reads.until((message) => message.payload.data?.record.id === 20_000);
    expect(idsOf(reads)).toEqual(upTo(20_000));
    await reads.close();
  });
});

test("that a killed gateway was sending is complete for a client that resumes at its replacement", async () => {
  const first = await startGateway(fixture.database);
  const { ids, told: result } = await listening(resuming(WebSocket), { url: first.url });
  await insert(1, 500);
  await result.until((id) => id === 100);
  await first.kill();
  await insert(501, 1_000);
  const second = await startGateway(fixture.database, { PORT: new URL(first.url).port });
  await insert(1_001, 1_200);
  await result.until((id) => id === 1_200);
  expect(ids).toEqual(upTo(1_200));
  await stopped(second, "SIGTERM");
});
