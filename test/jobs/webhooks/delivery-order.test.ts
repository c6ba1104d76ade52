import { setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import pg from "pg";
import { beforeAll, expect, test } from "vitest";
import type { Service } from "../../../service/wiring/service.ts";
import { useClient, useDatabase } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { serve } from "../../serve.ts";
import { until } from "../../until.ts";
import { startReceiver } from "./receiver.ts";

type Row = { readonly id: number; readonly version: string };
type Change = { readonly type: string; readonly record: Row | null; readonly old_record: Row | null };

// The log of the test is written by another trigger, row by row.
const database = useDatabase({
  sql: `
    create table public.counters (id integer primary key, version text not null);
    create table public.history (number bigint generated always as identity, type text, record json, old_record json);
    alter table public.counters enable row level security;
    alter table public.history enable row level security;
    grant select on public.counters to service_role;
    create function public.log_change() returns trigger language plpgsql as $$ begin
      insert into public.history (type, record, old_record) values (
        TG_OP, case when TG_OP <> 'DELETE' then row_to_json(NEW) end, case when TG_OP <> 'INSERT' then row_to_json(OLD) end
      );
      return null;
    end $$;
    create trigger log_change after insert or update or delete on public.counters for each row execute function public.log_change();`,
});
const owner = useClient(database.ownerUrl);
const receiver = useFixture(startReceiver);
beforeAll(() =>
  owner.query(
    `insert into api.webhooks (name, table_name, url, role, max_attempts) values ('all', 'counters', $1, 'service_role', 100)`,
    [receiver.url],
  ),
);

const idArbitrary = fc.integer({ min: 1, max: 6 });
const writeArbitrary = fc.oneof(
  fc.record({ kind: fc.constant("upsert"), ids: fc.uniqueArray(idArbitrary, { minLength: 1, maxLength: 4 }) }),
  fc.record({ kind: fc.constant("touch"), ids: fc.uniqueArray(idArbitrary, { minLength: 1, maxLength: 6 }) }),
  fc.record({ kind: fc.constant("remove"), ids: fc.uniqueArray(idArbitrary, { minLength: 1, maxLength: 2 }) }),
  fc.record({ kind: fc.constant("move"), ids: fc.uniqueArray(idArbitrary, { minLength: 2, maxLength: 2 }) }),
);
const transactionArbitrary = fc.record({
  writes: fc.array(writeArbitrary, { minLength: 1, maxLength: 3 }),
  isCommitted: fc.constantFrom(true, true, true, false),
  pauseMs: fc.integer({ min: 0, max: 5 }),
});
const historyArbitrary = fc.array(fc.array(transactionArbitrary, { minLength: 5, maxLength: 25 }), {
  minLength: 4,
  maxLength: 4,
});

type Write = { readonly kind: string; readonly ids: readonly number[] };

function statementFor({ kind, ids }: Write): string {
  const list = ids.join();
  switch (kind) {
    case "upsert":
      return `insert into counters select id, gen_random_uuid() from unnest('{${list}}'::int[]) as id
        on conflict (id) do update set version = excluded.version`;
    case "touch":
      return `update counters set version = gen_random_uuid() where id in (${list})`;
    case "remove":
      return `delete from counters where id in (${list})`;
    default:
      return `update counters set id = ${ids[1]}, version = gen_random_uuid() where id = ${ids[0]}
        and not exists (select from counters where id = ${ids[1]})`;
  }
}

type Transaction = { readonly writes: readonly Write[]; readonly isCommitted: boolean; readonly pauseMs: number };

/** Conflicts, such as deadlocks, roll the transaction back. */
async function runTransactions(transactions: readonly Transaction[]): Promise<void> {
  const client = new pg.Client({ connectionString: database.ownerUrl });
  await client.connect();
  for (const { writes, isCommitted, pauseMs } of transactions) {
    await client.query("begin");
    try {
      for (const write of writes) {
        await client.query(statementFor(write));
        await sleep(pauseMs);
      }
      await client.query(isCommitted ? "commit" : "rollback");
    } catch {
      await client.query("rollback");
    }
  }
  await client.end();
}

const versionsOf = ({ record, old_record: old }: Change) => `${old?.version ?? ""} ${record?.version ?? ""}`;

test("two gateways send what was committed and nothing else, in the order of each row, whatever the receiver does", async () => {
  const services: Service[] = [];
  const startService = async () => services.push(await serve(database, { WEBHOOK_NETWORK: "loopback" }));
  await Promise.all([startService(), startService()]);
  try {
    await fc.assert(
      fc.asyncProperty(historyArbitrary, fc.infiniteStream(fc.integer({ min: 0, max: 9 })), async (sessions, luck) => {
        const accepted = new Map<string, Change>();
        receiver.respond = (response, { id, body }) => {
          const chance = luck.next().value;
          response.statusCode = chance === 0 ? 422 : 200;
          if (chance !== 0 && !accepted.has(id)) accepted.set(id, JSON.parse(body));
          // It may have been accepted all the same.
          if (chance === 1) response.destroy();
          else setTimeout(() => response.end(), chance);
        };
        await owner.query("truncate history");
        await Promise.all(sessions.map(runTransactions));
        // The other one takes over, in the middle of it.
        await services.shift()!.stop();
        await startService();
        await until(
          async () => (await owner.query("select from content_service.webhook_deliveries limit 1")).rowCount === 0,
        );

        const { rows } = await owner.query<Change>("select * from history order by number");
        const sent = [...accepted.values()];
        expect(sent.map(versionsOf).sort()).toEqual(rows.map(versionsOf).sort());
        const touches = ({ record, old_record: old }: Change, id: number) => record?.id === id || old?.id === id;
        for (const id of [1, 2, 3, 4, 5, 6]) {
          const ofRow = (changes: readonly Change[]) => changes.filter((change) => touches(change, id)).map(versionsOf);
          expect(ofRow(sent)).toEqual(ofRow(rows));
        }
      }),
      { numRuns: 3, endOnFailure: true },
    );
  } finally {
    await Promise.all(services.map((service) => service.stop()));
  }
});
