import pg from "pg";
import { beforeAll, expect, test } from "vitest";
import { openDatabase } from "#postgres/database";
import { LiveQueries } from "../../../live/queries/live-queries.ts";
import type { LiveSource } from "../../../live/queries/live-subscriber.ts";
import { useFixture } from "../../fixture.ts";
import { until } from "../../until.ts";
import { Followed, QUIET, useFollowed } from "../stream/followed.ts";

const followed = useFollowed();
const STATEMENT = {
  text: "select coalesce(pg_catalog.json_agg(shown.name), '[]')::pg_catalog.text as result from public.shown",
  values: [],
};

const pool = useFixture(() => new pg.Pool({ connectionString: followed.database.ownerUrl, max: 4 }));
const database = useFixture(() =>
  openDatabase({ url: followed.database.ownerUrl, ownerUrl: followed.database.ownerUrl, log: QUIET }),
);
beforeAll(() =>
  followed.owner.query(`
    create table public.old_notes (id int primary key, name text);
    create table public.new_notes (id int primary key, name text);
    alter publication followed add table public.old_notes, public.new_notes;
    insert into public.old_notes values (1, 'old');
    insert into public.new_notes values (1, 'new')`),
);

const showNotes = (table: string) =>
  followed.owner.query(`begin;
    create or replace view public.shown as select name from public.${table};
    select pg_catalog.pg_logical_emit_message(true, 'schema', '');
    commit`);

function openLiveQueries() {
  const changes = followed.open();
  const record = new Followed();
  const asOwner = async <Result>(work: (client: pg.ClientBase) => Promise<Result>) => {
    const client = await pool.connect();
    try {
      return await work(client);
    } finally {
      client.release();
    }
  };
  const live = new LiveQueries({
    asOwner,
    database,
    changes,
    publication: "followed",
    reloadDefinitions: () => Promise.resolve(),
    log: QUIET,
  });
  return { changes, record, live };
}

/** `afterRun`: before the result of a run is used. */
function sourceOf(afterRun: () => Promise<void>): LiveSource {
  const caller = { kind: "known", role: "postgres", claims: {}, claimsText: "{}", expiresAt: null } as const;
  return {
    request: "shown",
    caller,
    quotaKey: "",
    isPrivate: false,
    run: async () => {
      const { rows } = await pool.query<{ result: string }>(STATEMENT.text);
      await afterRun();
      const context = { role: "postgres", settings: [["search_path", "public"]] } as const;
      return {
        text: rows[0]!.result,
        statements: [{ statement: STATEMENT, context }],
        filters: [],
        shown: [],
        missing: null,
      };
    },
  };
}

// Without the new definition, no such result ever comes.
test("a definition that changes while a query is opened changes its result, and what it depends on", async () => {
  await showNotes("old_notes");
  const { changes, record, live } = openLiveQueries();
  await changes.follow(record).from;
  let runs = 0;
  const subscription = await live.open(
    sourceOf(async () => {
      if (++runs > 1) return;
      await showNotes("new_notes");
      await until(() => record.messages.length > 0);
    }),
  );
  const untilResult = async (wanted: string) => {
    for (let result: string | null = null; result !== wanted; ) {
      const event = await subscription.next(60_000);
      if (event && event !== "idle") result = event.result;
    }
  };
  await untilResult('["new"]');
  await followed.owner.query("update public.new_notes set name = 'newer'");
  await untilResult('["newer"]');
  expect(live.statistics().bytes).toBeGreaterThan(0);
  live.endAll();
  expect(live.statistics().bytes).toBe(0);
});

test("a result is read anew while definitions change again and again", async () => {
  const { live } = openLiveQueries();
  const subscription = await live.open(sourceOf(() => Promise.resolve()));
  let isChanging = true;
  const changing = (async () => {
    for (let change = 0; change < 40; change++) await showNotes(change % 2 ? "new_notes" : "old_notes");
    isChanging = false;
  })();
  while (isChanging) expect(await subscription.refresh()).not.toBeNull();
  await changing;
  live.endAll();
});

test("a change of definitions leaves results alone that do not name what it changes", async () => {
  await followed.owner.query("update public.new_notes set name = 'newer'");
  await showNotes("old_notes");
  const { changes, record, live } = openLiveQueries();
  await changes.follow(record).from;
  const change = async (definitions: string) => {
    const { length } = record.messages;
    await followed.owner.query(
      `begin; ${definitions}; select pg_catalog.pg_logical_emit_message(true, 'schema', ''); commit`,
    );
    await until(() => record.messages.length > length);
  };
  await withoutOtherRoles(async () => {
    let runs = 0;
    const subscription = await live.open(
      sourceOf(async () => {
        runs++;
      }),
    );
    const nextResult = async () => {
      const event = await subscription.next(60_000);
      return event && event !== "idle" ? JSON.parse(event.result) : event;
    };
    // A run after a commit does not open the query again.
    const opened = () => runs - live.statistics().runs;
    expect(await nextResult()).toEqual(["old"]);
    await change("create table public.unrelated (id int); alter table public.new_notes add column length int");
    live.reviewDefinitions();
    await followed.owner.query("insert into public.old_notes values (2, 'older')");
    expect(await nextResult()).toEqual(["old", "older"]);
    expect(opened()).toBe(1);
    await change("create or replace view public.shown as select name from public.new_notes");
    expect(await nextResult()).toEqual(["newer"]);
    // A run after the insert may have been the first to read the new view.
    await expect.poll(opened).toBe(2);
  });
  live.endAll();
});

/** Tests of other databases of the server cannot change roles in the meantime, which would affect all queries. */
async function withoutOtherRoles(work: () => Promise<void>): Promise<void> {
  const client = await pool.connect();
  try {
    await client.query(`begin;
      lock table pg_catalog.pg_authid, pg_catalog.pg_auth_members, pg_catalog.pg_db_role_setting in share mode`);
    await work();
  } finally {
    await client.query("rollback");
    client.release();
  }
}
