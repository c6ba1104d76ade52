import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import {
  EventLease,
  type LeaseQueries,
  type LeaseRenewal,
  makeLeaseQueries,
} from "../../../graphql/operations/event-lease.ts";
import type { AsOwner } from "../../../postgres/database/owner-pool.ts";
import { Supervisor } from "../../../runtime/concurrency/supervisor.ts";
import { cloneDatabase, useClient, useDatabase } from "../../database.ts";

const NO_LOG = { warn: () => {} };

describe("the lease of events", () => {
  /** Makes a lease and a list of its queries and reports. */
  function leased(answers: (Partial<LeaseRenewal> | Error | null)[], stillWriting: () => readonly string[] = () => []) {
    const result: string[] = [];
    const ask: LeaseQueries = {
      awaitEvents: async () => {
        result.push("asked");
        const answer = answers.length > 1 ? answers.shift()! : answers[0]!;
        if (answer instanceof Error) throw answer;
        return answer && { wasAwaited: true, at: 0, writers: [], ...answer };
      },
      stillWriting: async () => stillWriting(),
    };
    const onDoubt = () => void result.push("doubt");
    const onMissed = () => void result.push("missed");
    const report = new Supervisor({ log: { info() {}, warn() {} } }).report("events");
    const lease = new EventLease({ queries: ask, report, onDoubt, onMissed, renewMs: 5, maxWaitMs: 50 });
    return { lease, told: result, heard: (what: string) => expect.poll(() => result).toContain(what) };
  }

  test("is acquired by the first holder, and renewed until the last releases it", async () => {
    const { lease, told: result } = leased([{}]);
    await Promise.all([lease.hold(), lease.hold()]);
    expect(result).toEqual(["asked"]);
    lease.release();
    await expect.poll(() => result.length).toBeGreaterThan(3);
    lease.release();
    await sleep(5);
    const { length } = result;
    await sleep(30);
    expect(result).toEqual(new Array(length).fill("asked"));
  });

  test.each([
    ["nobody awaited events before it was renewed", [{}, { wasAwaited: false }, {}]],
    ["it was renewed late", [{ at: 100 }, { at: 155 }]],
  ])("is uncertain if %s", async (_, answers) => {
    const { lease, told: result, heard } = leased(answers);
    await lease.hold();
    await heard("doubt");
    expect(result.slice(0, 3)).toEqual(["asked", "asked", "doubt"]);
    lease.release();
  });

  test("begins when earlier writers have ended", async () => {
    let writing = true;
    const { lease, told: result } = leased([{ writers: ["3/7"] }], () => (writing ? ["3/7"] : []));
    let isHeld = false;
    const held = lease.hold().then(() => (isHeld = true));
    await sleep(20);
    expect(isHeld).toBe(false);
    writing = false;
    await held;
    expect(result).not.toContain("missed");
    lease.release();
  });

  test("does not wait long, but reports later that events may have been missed", async () => {
    let writing = true;
    const { lease, told: result, heard } = leased([{ writers: ["3/7"] }], () => (writing ? ["3/7"] : []));
    await lease.hold();
    expect(result).not.toContain("missed");
    writing = false;
    await heard("missed");
    lease.release();
  });

  test("that cannot be acquired rejects, and can be tried again", async () => {
    const { lease } = leased([new Error("away"), {}]);
    await expect(lease.hold()).rejects.toThrow("away");
    await lease.hold();
    lease.release();
  });

  test("is not renewed without a holder", async () => {
    const { lease, told: result } = leased([{}]);
    await lease.renew();
    expect(result).toEqual([]);
    await lease.hold();
    await lease.renew();
    expect(result).toEqual(["asked", "asked"]);
    lease.release();
  });
});

describe("Postgres", () => {
  const others: pg.Client[] = [];
  const database = useDatabase();
  const owner = useClient(database.ownerUrl);
  beforeAll(() => owner.query("insert into public.users (name, email) values ('Ann', 'ann@example.org')"));
  afterEach(() => Promise.all(others.splice(0).map((client) => client.end())));

  async function connect(connectionString: string): Promise<pg.Client> {
    const client = new pg.Client({ connectionString });
    await client.connect();
    return client;
  }

  /** Connects another session. */
  async function another(url = database.ownerUrl): Promise<pg.Client> {
    const client = await connect(url);
    others.push(client);
    return client;
  }

  const questionsOf = (client: pg.Client, log = NO_LOG) => {
    const asOwner: AsOwner = (work) => work(client);
    return makeLeaseQueries({ asOwner, log });
  };
  const forget = () => owner.query("select setval('content_service.events_awaited_until', 1)");
  const WRITE = "insert into public.articles (author_id, title, content) values (1, 'First one', '')";

  test("reports whether there are subscribers, also to the login of requests", async () => {
    await forget();
    const login = questionsOf(await another(database.url));
    expect(await login.awaitEvents(60)).toMatchObject({ wasAwaited: false, writers: [] });
    expect(await questionsOf(owner).awaitEvents(60)).toMatchObject({ wasAwaited: true, writers: [] });
    await forget();
    await questionsOf(owner).awaitEvents(-1);
    expect(await questionsOf(owner).awaitEvents(60)).toMatchObject({ wasAwaited: false });
  });

  test.each(["read committed", "repeatable read", "serializable"])(
    "reports transactions that have written and are open, %s",
    async (isolation) => {
      await forget();
      const writer = await another();
      const listener = await another();
      const heard: unknown[] = [];
      listener.on("notification", ({ payload }) => heard.push(payload));
      await listener.query("listen graphql");
      await writer.query(`begin isolation level ${isolation}`);
      await writer.query(WRITE);
      const ask = questionsOf(owner);
      const { writers } = (await ask.awaitEvents(60))!;
      expect(writers).toHaveLength(1);
      expect(await ask.stillWriting(writers)).toEqual(writers);
      // Its later writes emit events, whatever it saw at its beginning.
      await writer.query("update public.articles set title = 'Another one'");
      await writer.query("commit");
      expect(await ask.stillWriting(writers)).toEqual([]);
      await listener.query("select");
      expect(heard).not.toEqual([]);
      expect(heard.filter((payload) => String(payload).includes('"insert"'))).toEqual([]);
    },
  );

  test("needs no query if other triggers emit the events", async () => {
    const empty = await cloneDatabase("empty");
    const client = await another(empty.ownerUrl);
    expect(await questionsOf(client).awaitEvents(60)).toBeNull();
    await client.end();
    others.pop();
    await empty.drop();
  });

  test("is not used by a login role without the privilege, which is logged once", async () => {
    await owner.query("revoke execute on function content_service.await_events from authenticator");
    const said: unknown[] = [];
    const ask = questionsOf(await another(database.url), { warn: (...words: unknown[]) => void said.push(words) });
    expect(await ask.awaitEvents(60)).toBeNull();
    expect(await ask.awaitEvents(60)).toBeNull();
    expect(said).toHaveLength(1);
    await owner.query("grant execute on function content_service.await_events to authenticator");
  });
});
