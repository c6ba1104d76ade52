import pg from "pg";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { MANY_ROWS } from "../../migrate/many-rows.ts";
import { type RowEstimates, readRowEstimates } from "../../migrate/measure-statement.ts";
import { measureTransaction } from "../../migrate/measured-transaction.ts";
import type { StatementVerdict } from "../../migrate/statement-verdict.ts";
import { withTriedRowLocks } from "../../migrate/tried-row-locks.ts";
import { cloneDatabase, type TestDatabase } from "../database.ts";
import { shareOf } from "../property-runs.ts";
import { until } from "../until.ts";
import {
  READ_VIEWS,
  TRANSACTION_CORPUS,
  TRANSACTION_ROWS,
  TRANSACTION_SCHEMA,
  UPDATED_TABLES,
} from "./transaction-corpus.ts";

// A statement that takes long holds others, and on a loaded machine any statement may take long: here, none takes time.
beforeAll(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterAll(() => void vi.useRealTimers());

let full: TestDatabase;
/** The same without rows. */
let empty: TestDatabase;
let estimates: RowEstimates;
let migration: pg.Client;
let observer: pg.Client;
let reader: pg.Client;
let writer: pg.Client;
let pids: Map<pg.Client, number>;

beforeAll(async () => {
  [full, empty] = await Promise.all([cloneDatabase("empty"), cloneDatabase("empty")]);
  const connect = async (url: string) => {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    return client;
  };
  const url = full.ownerUrl;
  [migration, observer, reader, writer] = (await Promise.all([url, url, url, url].map(connect))) as [
    pg.Client,
    pg.Client,
    pg.Client,
    pg.Client,
  ];
  await migration.query(TRANSACTION_SCHEMA + TRANSACTION_ROWS);
  await migration.query("analyze");
  pids = new Map();
  for (const client of [migration, reader, writer])
    pids.set(client, (await client.query("select pg_backend_pid() as pid")).rows[0].pid);
  estimates = await readRowEstimates(observer);
  const other = await connect(empty.ownerUrl);
  await other.query(TRANSACTION_SCHEMA);
  await other.end();
});
afterAll(async () => {
  await Promise.all([migration, observer, reader, writer].map((client) => client?.end()));
  await Promise.all([full, empty].map((database) => database?.drop()));
});

/** True if the session waits for the migration with these statements, which are then rolled back. */
async function waits(client: pg.Client, sql: string): Promise<boolean> {
  let isDone = false;
  let isHeld = false;
  await client.query("begin");
  const running = client
    .query(sql)
    .then(
      () => null,
      (error: Error) => error,
    )
    .finally(() => {
      isDone = true;
    });
  const sessions = [migration, client].map((session) => pids.get(session));
  await until(async () => {
    if (isDone) return true;
    const { rows } = await observer.query("select $1::int = any (pg_blocking_pids($2)) as held", sessions);
    isHeld = rows[0].held;
    return isHeld;
  });
  if (isHeld) await observer.query("select pg_cancel_backend($1)", [pids.get(client)]);
  const error = await running;
  await client.query("rollback");
  if (error && !isHeld) throw error;
  return isHeld;
}

const READS = [...UPDATED_TABLES, ...READ_VIEWS].map((table) => `select count(*) from ${table}`).join("; ");
const UPDATES = UPDATED_TABLES.map((table) => `update ${table} set touched = 0`).join("; ");

/** Returns whether the migration blocks the reads and writes of an application now. */
async function observeWaits() {
  return { reads: await waits(reader, READS), writes: await waits(writer, UPDATES) };
}

type Observed = { readonly sql: string; readonly isLong: boolean; readonly reads: boolean; readonly writes: boolean };

type Judged = { readonly verdict: StatementVerdict["verdict"]; readonly observed: Observed };

const isStarred = (sql: string) => sql.startsWith("* ");
const textOf = (sql: string) => sql.replace(/^\* /, "");

/** Runs the script in a transaction that is rolled back, and after each statement the sessions of an application. */
async function judgeBesideSessions(script: readonly string[]): Promise<Judged[]> {
  await migration.query("begin");
  try {
    return await withTriedRowLocks(full.ownerUrl, async (findRowLocks) => {
      const measured = await measureTransaction(migration, { estimates, hasRows: true, findRowLocks });
      const judged: Judged[] = [];
      for (const [index, marked] of script.entries()) {
        const sql = textOf(marked);
        const { verdict } = (await measured.run(sql, { isLast: index === script.length - 1 })).judged;
        judged.push({ verdict, observed: { sql, isLong: isStarred(marked), ...(await observeWaits()) } });
      }
      return judged;
    });
  } finally {
    await migration.query("rollback");
  }
}

/** Null if it fails without rows. */
async function judgeAlone(database: TestDatabase, script: readonly string[], rows: RowEstimates) {
  const client = new pg.Client({ connectionString: database.ownerUrl });
  await client.connect();
  await client.query("begin");
  try {
    const measured = await measureTransaction(client, {
      estimates: rows,
      hasRows: database === full,
      findRowLocks: null,
    });
    const verdicts: StatementVerdict["verdict"][] = [];
    for (const [index, sql] of script.entries()) {
      verdicts.push((await measured.run(textOf(sql), { isLast: index === script.length - 1 })).judged.verdict);
    }
    return verdicts;
  } catch (error) {
    if (error instanceof pg.DatabaseError) return null;
    throw error;
  } finally {
    await client.query("rollback");
    await client.end();
  }
}

/** Returns why a verdict says too little; null if it does not. */
function findUnderstatement({ verdict, observed: { isLong, reads, writes } }: Judged): string | null {
  if (verdict === "safe" && (reads || writes)) return 'false "safe"';
  if (verdict === "brief" && isLong && (reads || writes)) return 'false "brief"';
  return verdict === "holds writes" && isLong && reads ? 'false "holds writes"' : null;
}

function findFalseAlarm({ verdict, observed: { isLong, reads, writes } }: Judged): string | null {
  if (verdict === "safe") return null;
  if (verdict === "brief") return reads || writes ? null : "false brief alarm";
  if (!isLong || !(reads || writes)) return "false alarm";
  return verdict !== "holds writes" && !reads ? "false alarm for reads" : null;
}

test("the corpus has 120 scripts, and no script twice", () => {
  expect(new Set(TRANSACTION_CORPUS.map(String)).size).toBe(TRANSACTION_CORPUS.length);
  expect(TRANSACTION_CORPUS.length).toBeGreaterThanOrEqual(120);
});

describe("the verdicts say what two sessions wait for that read and update", () => {
  test.each(shareOf(TRANSACTION_CORPUS).map((script) => [script.join("; "), script] as const))(
    "%s",
    async (_, script) => {
      const judged = await judgeBesideSessions(script);
      expect(judged.filter(findUnderstatement)).toEqual([]);
      expect(judged.filter(findFalseAlarm)).toEqual([]);
      const assumed = {
        "--schema-only": await judgeAlone(empty, script, estimates),
        commit: await judgeAlone(empty, script, () => MANY_ROWS),
        "dry run": await judgeAlone(full, script, estimates),
      };
      for (const [mode, verdicts] of Object.entries(assumed)) {
        const others = verdicts?.map((verdict, index) => ({ ...judged[index]!, verdict })) ?? [];
        expect({ mode, wrong: others.filter(findUnderstatement) }).toEqual({ mode, wrong: [] });
      }
    },
  );
});
