import pg from "pg";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { strongestBlockingMode } from "../../migrate/lock-modes.ts";
import {
  NO_MEASURES,
  type RelationStates,
  type RowEstimates,
  readRelations,
  readRowEstimates,
} from "../../migrate/measure-statement.ts";
import { measureTransaction } from "../../migrate/measured-transaction.ts";
import type { RowLockFinder } from "../../migrate/row-locks.ts";
import {
  estimateHeldRequests,
  type JudgedStatement,
  judgeStatement,
  judgeWithoutTransaction,
  type StatementVerdict,
} from "../../migrate/statement-verdict.ts";
import { withTriedRowLocks } from "../../migrate/tried-row-locks.ts";
import { useDatabase } from "../database.ts";
import { shareOf } from "../property-runs.ts";
import { CORPUS_SCHEMA, CORPUS as FIRST_STATEMENTS, SAFE_FORMS } from "./lock-corpus.ts";
import { MORE_STATEMENTS } from "./more-lock-statements.ts";

// A statement that takes long holds others, and on a loaded machine any statement may take long: here, none takes time.
beforeAll(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterAll(() => void vi.useRealTimers());

const CORPUS = [...FIRST_STATEMENTS, ...MORE_STATEMENTS];
const REHEARSED = [
  ...FIRST_STATEMENTS,
  ...MORE_STATEMENTS.map(([lock, verdict, statements]) => [lock, verdict, shareOf(statements)] as const),
];

let client: pg.Client;
let observer: pg.Client;
let estimates: RowEstimates;
let begun: RelationStates;
let pid: number;
const database = useDatabase({ template: "empty" });
beforeAll(async () => {
  client = new pg.Client({ connectionString: database.ownerUrl });
  observer = new pg.Client({ connectionString: database.ownerUrl });
  await Promise.all([client.connect(), observer.connect()]);
  await client.query(CORPUS_SCHEMA);
  estimates = await readRowEstimates(client);
  begun = await readRelations(client);
  pid = (await client.query("select pg_backend_pid() as pid")).rows[0].pid;
});
afterAll(async () => {
  await Promise.all([client.end(), observer.end()]);
});

/** Measures statements in the open transaction. */
function measure<T>(work: (run: (sql: string) => Promise<JudgedStatement>) => Promise<T>): Promise<T> {
  return withTriedRowLocks(database.ownerUrl, async (findRowLocks: RowLockFinder) => {
    const measured = await measureTransaction(client, { estimates, hasRows: true, findRowLocks });
    return work(async (sql) => ({ line: 1, sql, ...(await measured.run(sql)).judged }));
  });
}

function judge(statement: string): Promise<StatementVerdict> {
  return measure((run) => run(statement));
}

/** The strongest lock on a relation that was there before, as another session sees it. */
async function observeLock(): Promise<string> {
  const { rows } = await observer.query(
    "select mode from pg_locks where pid = $1 and locktype = 'relation' and granted and relation = any ($2)",
    [pid, [...begun.keys()]],
  );
  return strongestBlockingMode(rows.map(({ mode }) => mode))?.mode ?? "none";
}

/** Statements with the lock and the verdict that were not expected, and the safe forms. */
async function rehearseCorpus() {
  const differences: string[] = [];
  const forms = new Map<string, string>();
  for (const [expectedLock, expectedVerdict, statements] of REHEARSED) {
    for (const statement of statements) {
      await client.query("begin");
      try {
        const { verdict, safeForm } = await judge(statement);
        const lock = await observeLock();
        const needsForm = verdict !== "safe" && verdict !== "brief";
        if (lock !== expectedLock || verdict !== expectedVerdict || needsForm !== (safeForm !== null))
          differences.push(`${statement}: ${lock}, ${verdict}, ${safeForm}`);
        if (safeForm !== null) forms.set(safeForm, statement);
      } catch (error) {
        differences.push(`${statement}: ${(error as Error).message}`);
      }
      await client.query("rollback");
    }
  }
  return { differences, forms };
}

test("the corpus has statements of all classes of locks", () => {
  const statements = CORPUS.flatMap(([, , all]) => all);
  expect(new Set(statements).size).toBe(statements.length);
  expect(statements.length).toBeGreaterThanOrEqual(300);
});

/** Returns the safe form of a statement that holds others. */
function safeFormOf(statement: string): string | null {
  const lockedRows = [{ relation: "public.big", rows: 10_000, isEarlier: false }];
  return judgeStatement(statement, { ...NO_MEASURES, lockedRows, changed: 10_000 }).safeForm;
}

test("each statement of the corpus has the verdict of the locks that another session sees, and a safe form that is tried below", async () => {
  const { differences, forms } = await rehearseCorpus();
  expect(differences).toEqual([]);
  const tried = SAFE_FORMS.map(([unsafe]) => safeFormOf(unsafe));
  expect([...forms].filter(([form]) => !tried.includes(form))).toEqual([]);
});

test("a statement that reads rows while an earlier one of its transaction holds a table, holds reads", async () => {
  await client.query("begin");
  const [first, second] = await measure(async (run) => [
    await run("alter table tiny add column e int"),
    await run("select count(*) from big"),
  ]);
  expect(first!.verdict).toBe("brief");
  expect(second!).toMatchObject({
    locks: [{ relation: "public.tiny", mode: "AccessExclusiveLock", blocks: "reads and writes", isEarlier: true }],
    verdict: "holds reads",
    safeForm: expect.stringContaining("a migration of its own"),
  });
  await client.query("rollback");
});

describe("safe forms", () => {
  test.each(SAFE_FORMS)("the safe form of %s is accepted", async (_, steps) => {
    for (const step of steps) {
      if (step.startsWith("!")) {
        await client.query(step.slice(1));
        expect(judgeWithoutTransaction(step.slice(1)).verdict).toBe("safe");
        continue;
      }
      await client.query("begin");
      expect(`${step}: ${(await judge(step)).verdict}`).toMatch(/: (safe|brief)$/);
      await client.query("commit");
    }
  });
});

test("the requests that a statement would hold are those for its tables, at their rates", () => {
  const lock = { relation: "public.films", mode: "ShareLock", blocks: "writes", isEarlier: false } as const;
  const rates = [
    { reads: ["public.films", "public.makers"], writes: [], perHour: 7_200 },
    { reads: ["public.films"], writes: ["public.films"], perHour: 3_600 },
    { reads: ["public.makers"], writes: ["public.makers"], perHour: 36_000 },
  ];
  expect(estimateHeldRequests({ ...NO_MEASURES, locks: [lock], milliseconds: 500 }, rates)).toBe(0.5);
  const reads = { ...lock, blocks: "reads and writes" } as const;
  expect(estimateHeldRequests({ ...NO_MEASURES, locks: [reads, lock], milliseconds: 500 }, rates)).toBe(1.5);
  expect(estimateHeldRequests({ ...NO_MEASURES, milliseconds: 500 }, rates)).toBe(0);
  const lockedRows = [{ relation: "public.films", rows: 1, isEarlier: true }];
  expect(estimateHeldRequests({ ...NO_MEASURES, lockedRows, milliseconds: 500 }, rates)).toBe(0.5);
});
