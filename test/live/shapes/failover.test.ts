import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { FailoverGroup } from "../../failover.ts";
import { useFixture } from "../../fixture.ts";
import { serverBinaries } from "../../server-binaries.ts";
import { until } from "../../until.ts";
import { followShape, openRestartedService, type RestartedService, type ShapeFollower } from "./restarted-service.ts";

const { major } = await serverBinaries();
const NO_FAILOVER_SLOTS = "Postgres before 17 has no failover slots.";

const SCHEMA = `
  create role anon;
  create role authenticated;
  create role authenticator login noinherit;
  grant anon, authenticated to authenticator;
  create function public.sub() returns text language sql stable set search_path = ''
    return current_setting('request.jwt.claims', true)::json ->> 'sub';
  create table public.guests (room int, person text, primary key (room, person));
  create table public.letters (id int primary key, room int not null, body text not null);
  alter table public.letters enable row level security;
  create policy of_guests on public.letters for select
    using (exists (select from public.guests g where g.room = letters.room and person = public.sub()));
  grant select on public.letters, public.guests to authenticated;
  create publication supabase_realtime for table public.letters, public.guests`;
const ROWS = `
  truncate public.guests, public.letters;
  insert into public.guests values (1, 'ann'), (2, 'bob'), (3, 'bob');
  insert into public.letters select n, 1 + n % 3, 'first' from generate_series(1, 30) n`;

type Client = { readonly person: string; readonly follower: ShapeFollower };

/** One that keeps running, and one that is killed with the primary. */
let running: RestartedService;
let killed: RestartedService;
const abort = new AbortController();

const group = useFixture(() => FailoverGroup.start());
beforeAll(async () => {
  await group.query(SCHEMA);
  const database = {
    url: group.allServers("authenticator", "postgres"),
    ownerUrl: group.allServers("postgres", "postgres"),
  };
  [running, killed] = await Promise.all([openRestartedService(database), openRestartedService(database)]);
});
beforeEach(() => group.query(ROWS));
afterAll(async () => {
  abort.abort();
  await running.close();
  await killed.close();
});

let sessions = 0;

/** Callers of a new session, whose shapes are opened with them. */
function openClients(): Client[] {
  const session = ++sessions;
  return [running, killed].flatMap((service) =>
    ["ann", "bob"].flatMap((person) =>
      [false, true].map((liveSse) => ({
        person,
        follower: service.follow({ table: "letters", claims: { sub: person, session }, liveSse }),
      })),
    ),
  );
}

/** Resolves when each has the rows that the query returns to it. */
async function untilCurrent(clients: readonly Client[]): Promise<void> {
  for (const { person, follower } of clients) {
    const { rows } = await group.query(
      `select id, room, body from public.letters join public.guests g using (room) where g.person = '${person}'`,
    );
    const expected = JSON.stringify(rows.map((row) => JSON.stringify(row)).toSorted());
    await until(() => JSON.stringify(follower.rows()) === expected);
  }
}

/** Counts up in a letter of each room, one commit after the other. A failed commit is repeated, as during the failover. */
function startWriter() {
  let isStopped = false;
  let written = 0;
  const run = async () => {
    while (!isStopped)
      await group.query(`update public.letters set body = '${written + 1}' where id <= 3`).then(
        () => written++,
        () => sleep(20),
      );
  };
  const ended = run();
  return {
    written: () => written,
    stop() {
      isStopped = true;
      return ended;
    },
  };
}

const refetchesOf = (clients: readonly Client[]) => clients.map(({ follower }) => follower.refetches());

test.for([
  { syncsSlots: true, how: "crash" },
  { syncsSlots: false, how: "shutdown" },
] as const)(
  "clients continue at a promoted standby, also those of a service that was killed with the primary: %o",
  async ({ syncsSlots, how }, { skip }) => {
    skip(syncsSlots && major < 17, NO_FAILOVER_SLOTS);
    const clients = openClients();
    await untilCurrent(clients);
    await group.addStandby({ syncsSlots, isSynchronous: true });
    if (syncsSlots) await group.slotSynced();
    const writer = startWriter();
    await until(() => writer.written() > 20);
    await killed.restart("SIGKILL", () => group.failOver(how));
    const before = writer.written();
    await until(() => writer.written() > before + 20);
    await writer.stop();
    await untilCurrent(clients);
    expect(refetchesOf(clients)).toEqual(clients.map(() => 0));
    for (const { follower } of clients) {
      const bodies = follower.takeReceived().map((row) => JSON.parse(row).body);
      const counts = bodies.filter((body) => body !== "first").map(Number);
      expect(counts).toEqual(counts.toSorted((one, other) => one - other));
    }
  },
);

test.for([true, false])(
  "what was lost with the primary leaves its clients, also those that have begun with it (copies of slots: %o)",
  async (syncsSlots, { skip }) => {
    skip(syncsSlots && major < 17, NO_FAILOVER_SLOTS);
    const early = openClients();
    await untilCurrent(early);
    await group.addStandby({ syncsSlots });
    if (syncsSlots) await group.slotSynced();
    await group.query("update public.letters set body = 'kept' where id = 4");
    await group.caughtUp();
    await group.cutStandby();
    // Far more of the log than the new primary writes, so that its positions are lower.
    await group.query(`
      insert into public.letters select n, 1 + n % 3, repeat('lost', 1000) from generate_series(101, 400) n;
      update public.letters set body = 'lost' where id between 5 and 10;
      delete from public.letters where id between 11 and 20;
      insert into public.guests values (3, 'ann');
      delete from public.guests where room = 2`);
    await untilCurrent(early);
    const late = openClients();
    const clients = [...early, ...late];
    await untilCurrent(clients);
    await killed.restart("SIGKILL", () => group.failOver("crash"));
    await group.query("update public.letters set body = 'after' where id between 20 and 25");
    await untilCurrent(clients);
    for (const { follower } of clients) {
      const rows = follower.rows();
      expect(rows.filter((row) => row.includes("lost"))).toEqual([]);
      expect(rows.filter((row) => row.includes("after")).length).toBeGreaterThan(0);
    }
    await group.query("update public.letters set body = 'later' where id between 5 and 25");
    await untilCurrent(clients);
    expect(refetchesOf(clients)).toEqual(clients.map(() => 0));
  },
);

test("a client that another service takes over after a failover begins anew, and has the rows of the new primary", async () => {
  let service = running;
  const follower = followShape({ table: "letters", claims: { sub: "ann" } }, () => service.program().url, abort.signal);
  const client = { person: "ann", follower };
  await untilCurrent([client]);
  await group.addStandby({ syncsSlots: false });
  await group.caughtUp();
  await group.cutStandby();
  await group.query("update public.letters set body = 'lost'");
  await untilCurrent([client]);
  service = killed;
  await running.restart("SIGKILL", () => group.failOver("crash"));
  await untilCurrent([client]);
  expect(follower.refetches()).toBe(1);
});
