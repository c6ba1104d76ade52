import { expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { startReceiver } from "../../jobs/webhooks/receiver.ts";
import { propertyRuns } from "../../property-runs.ts";
import { until } from "../../until.ts";
import { CALLERS, type Caller, type TableName } from "./access-rules.ts";
import { openRandomTables } from "./random-tables.ts";

const PAIRS = propertyRuns(25);
const SEED = Number(process.env.POLICY_SEED ?? 11);

const settings = { WEBHOOK_NETWORK: "loopback" };
const tables = useFixture(() => openRandomTables({ pairs: PAIRS, seed: SEED, template: "content", settings }));
const receiver = useFixture(startReceiver);

/** JSON of a row; null if there is none. */
type Version = string | null;
type Change = { readonly type: "INSERT" | "UPDATE" | "DELETE"; readonly old: Version; readonly new: Version };

const CHANGES: Readonly<Record<TableName, string>> = {
  thing: `
    insert into public.thing_$$ values (5, 'b', 3, 'new', 2), (6, null, 0, null, null);
    update public.thing_$$ set owner = 'b', level = 3, team_id = 2 where id = 1;
    update public.thing_$$ set owner = 'a', note = null where id in (2, 4);
    delete from public.thing_$$ where id = 3`,
  team: `
    insert into public.team_$$ values (5, 'a', 2, 'new');
    update public.team_$$ set owner = 'c', level = 0 where id = 1;
    update public.team_$$ set owner = 'a', level = 2 where id = 3;
    delete from public.team_$$ where id = 5`,
};

test("a webhook sends what plain SQL selects as its role with its claims, whatever the policies and grants are", async () => {
  let sent = 0;
  // A policy of the things reads the teams, so these change when everything about the things is sent.
  for (const table of ["thing", "team"] as const) {
    receiver.requests.length = 0;
    await addWebhooks(table);
    const changes: Change[][] = [];
    for (let number = 0; number < PAIRS; number++) changes.push(await changeRows(table, number));
    const waiting = `select from api.webhooks as w join content_service.webhook_deliveries as d on d.webhook_id = w.id
      where w.disabled_because is null`;
    await until(async () => (await tables.owner.query(waiting)).rowCount === 0);
    for (let number = 0; number < PAIRS; number++) {
      for (const [index, caller] of CALLERS.entries()) {
        const context = `${table} ${number} ${JSON.stringify(caller)}`;
        const expected = await visibleChanges(changes[number]!, { caller, table, number });
        const got = receiver.requests
          .filter(({ path }) => path === `/hook?${number}-${index}`)
          .map(({ body }) => contentOf(body));
        sent += got.length;
        expect([context, got.sort()]).toEqual([context, expected.sort()]);
      }
    }
    await tables.owner.query("delete from api.webhooks");
  }
  expect(sent).toBeGreaterThan(PAIRS);
});

async function addWebhooks(table: TableName): Promise<void> {
  for (let number = 0; number < PAIRS; number++) {
    for (const [index, { role, ...claims }] of CALLERS.entries()) {
      await tables.owner.query(
        "insert into api.webhooks (name, table_name, url, role, claims) values ($1, $2, $3, $4, $5)",
        [`${number}-${index}`, `public.${table}_${number}`, `${receiver.url}?${number}-${index}`, role, claims],
      );
    }
  }
}

/** Changes the rows as the owner, and returns the changes. */
async function changeRows(table: TableName, number: number): Promise<Change[]> {
  const versions = async () => {
    const { rows } = await tables.owner.query(`select id, to_json(t)::text as row from public.${table}_${number} as t`);
    return new Map<number, string>(rows.map(({ id, row }) => [id, row]));
  };
  const before = await versions();
  const changes: Change[] = [];
  for (const statement of CHANGES[table].replaceAll("$$", String(number)).split(";")) {
    const old = await versions();
    await tables.owner.query(statement);
    const now = await versions();
    for (const id of new Set([...old.keys(), ...now.keys()])) {
      const [one = null, other = null] = [old.get(id), now.get(id)];
      if (one === other) continue;
      changes.push({ type: one === null ? "INSERT" : other === null ? "DELETE" : "UPDATE", old: one, new: other });
    }
  }
  expect(before.size).toBeGreaterThan(0);
  return changes;
}

type Place = { readonly caller: Caller; readonly table: TableName; readonly number: number };

async function visibleChanges(changes: readonly Change[], place: Place): Promise<string[]> {
  const contents: string[] = [];
  for (const change of changes) {
    const old = change.old && (await visibleVersion(change.old, place));
    const now = change.new && (await visibleVersion(change.new, place));
    if (change.new === null ? old === null : now === null) continue;
    contents.push(JSON.stringify([change.type, old && JSON.parse(old), now && JSON.parse(now)]));
  }
  return contents;
}

/** The columns of the row that the caller may read, if it is the only one of the table. */
async function visibleVersion(version: string, { caller, table, number }: Place): Promise<Version> {
  const columns = (await tables.columnsOf(caller, number, "select"))[table];
  if (columns.length === 0) return null;
  const name = `public.${table}_${number}`;
  return tables.asCaller(caller, async (client) => {
    await client.query("reset role; set local session_replication_role = replica");
    await client.query(`delete from ${name}`);
    await client.query(`insert into ${name} select * from json_populate_record(null::${name}, $1)`, [version]);
    await client.query("select set_config('role', $1, true)", [caller.role]);
    try {
      const { rows } = await client.query(
        `select to_json(t)::text as row from (select ${columns.join()} from ${name}) as t`,
      );
      return rows[0]?.row ?? null;
    } catch {
      return null;
    }
  });
}

function contentOf(body: string): string {
  const { type, record, old_record: old } = JSON.parse(body);
  return JSON.stringify([type, old, record]);
}
