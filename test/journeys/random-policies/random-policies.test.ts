import fc from "fast-check";
import pg from "pg";
import { expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { propertyRuns } from "../../property-runs.ts";
import { openClient } from "../../rest-gateway/table/client.ts";
import { CALLERS, type Caller, type Returning, rowsSql } from "./access-rules.ts";
import { sendToGraphql, sendToResource, sendToTable, toVerdict, type Verdict } from "./interfaces.ts";
import { openRandomTables } from "./random-tables.ts";
import { columnsUsed, type RowWrite, restrictColumns, toMutation, toSql, type Write, writes } from "./writes.ts";

/** Pairs of tables, and the writes that each caller tries on each interface. */
const PAIRS = propertyRuns(60);
const WRITES = 8;
const SEED = Number(process.env.POLICY_SEED ?? 7);

const tables = useFixture(() => openRandomTables({ pairs: PAIRS, seed: SEED }));
const rest = useFixture(() => openClient(tables.service.url));

/** The verdict of a write, and the rows that it leaves. */
type Outcome = { readonly verdict: Verdict; readonly rows: string };
type SqlOutcome = Outcome & { readonly count: number };

/** A write as a caller, with its outcome in SQL: without returned rows, and with all columns that the caller may read. */
type Trial = {
  readonly number: number;
  readonly caller: Caller;
  readonly write: Write;
  readonly readable: Returning;
  readonly plain: SqlOutcome;
  readonly returned: SqlOutcome;
};

/** Any of the outcomes is right. */
type Result = { readonly name: string; readonly got: Outcome; readonly expected: readonly Outcome[] };

test("a write changes what plain SQL changes as the role of the caller, whatever the policies and grants are", async () => {
  const differences: object[] = [];
  const changes = new Map<string, number>();
  for (let number = 0; number < PAIRS; number++) {
    const before = await rowsOf(tables.owner, number);
    for await (const { trial, result } of runTrials(number)) {
      const { name, got, expected } = result;
      const isChanged = got.rows !== before;
      if (isChanged) changes.set(name, (changes.get(name) ?? 0) + 1);
      const isRight = expected.some(({ verdict, rows }) => {
        return got.verdict === verdict && got.rows === (verdict === "accepted" ? rows : before);
      });
      const { caller, write } = trial;
      const verdicts = { got: got.verdict, isChanged, expected: expected.map(({ verdict }) => verdict) };
      if (!isRight) differences.push({ name, number, ...verdicts, caller, write });
    }
  }
  expect(differences).toEqual([]);
  for (const name of ["table", "table with rows", "resource", "graphql"]) {
    expect(changes.get(name), name).toBeGreaterThan(PAIRS);
  }
});

async function* runTrials(number: number): AsyncGenerator<{ readonly trial: Trial; readonly result: Result }> {
  for (const [index, caller] of CALLERS.entries()) {
    const readable = await tables.columnsOf(caller, number, "select");
    for (const write of fc.sample(writes, { numRuns: WRITES, seed: SEED + number * CALLERS.length + index })) {
      const plain = await runSql(write, caller, number, null);
      const returned = await runSql(write, caller, number, write.kind === "nested" ? withLinks(readable) : readable);
      const trial = { number, caller, write, readable, plain, returned };
      for (const attempt of [tryTable, tryTableWithRows, tryResource, tryGraphql]) {
        const result = await attempt(trial);
        if (result) yield { trial, result };
      }
    }
  }
}

async function tryTable({ number, caller, write, plain, returned }: Trial): Promise<Result> {
  const got = await attemptOn(number, () => sendToTable(rest, write, caller, number, null));
  return { name: "table", got, expected: write.kind === "nested" ? [plain, returned] : [plain] };
}

async function tryTableWithRows({ number, caller, write, readable, plain, returned }: Trial): Promise<Result> {
  const got = await attemptOn(number, () => sendToTable(rest, write, caller, number, readable));
  return { name: "table with rows", got, expected: write.kind === "nested" ? [plain, returned] : [returned] };
}

async function tryResource({ number, caller, write, readable }: Trial): Promise<Result | null> {
  if (write.kind === "nested") return null;
  const { url } = tables.service;
  const got = await attemptOn(number, () => sendToResource(url, write, caller, number));
  const written = await withoutIgnored(write, caller, number, readable);
  // Nothing is changed; whether the caller might change the row is no question of SQL.
  if (written.kind === "update" && Object.keys(written.values).length === 0) {
    return { name: "resource", got, expected: [{ verdict: got.verdict, rows: await rowsOf(tables.owner, number) }] };
  }
  const outcomes = [await runSql(written, caller, number, null), await runSql(written, caller, number, readable)];
  if (!outcomes.some(isNothing)) return { name: "resource", got, expected: outcomes };
  // A caller who can read the row learns that it may not be changed.
  const verdict = (await canRead(written, caller, number, readable)) ? "denied" : "not found";
  return { name: "resource", got, expected: outcomes.map((outcome) => replaceNothing(outcome, verdict)) };
}

async function tryGraphql({ number, caller, write, plain, returned }: Trial): Promise<Result | null> {
  const mutation = toMutation(write, number);
  if (mutation === null || !(await isInGraphql(write, caller, number))) return null;
  const { url } = tables.service;
  const got = await attemptOn(number, () => sendToGraphql(url, mutation, caller));
  if (write.kind === "update") {
    return { name: "graphql", got, expected: [plain, returned].map((each) => replaceNothing(each, "not found")) };
  }
  const expected = [plain, returned];
  // The schema of a role has no fields for rows that it may not insert, whatever the other rows are.
  if (write.kind === "nested" && !(await mayWriteAll(write, caller, number))) expected.push(DENIED);
  return { name: "graphql", got, expected };
}

const DENIED: SqlOutcome = { verdict: "denied", rows: "", count: 0 };

function isNothing({ verdict, count }: SqlOutcome): boolean {
  return verdict === "accepted" && count === 0;
}

function replaceNothing(outcome: SqlOutcome, verdict: Verdict): Outcome {
  return isNothing(outcome) ? { ...outcome, verdict } : outcome;
}

/** Afterwards the rows are as before. */
async function attemptOn(number: number, send: () => Promise<Verdict>): Promise<Outcome> {
  const verdict = await send();
  const rows = await rowsOf(tables.owner, number);
  await tables.owner.query(rowsSql(number));
  return { verdict, rows };
}

async function rowsOf(client: pg.Client, number: number): Promise<string> {
  const rows = (table: string) => `(select json_agg(t order by id) from public.${table}_${number} as t)`;
  const { rows: found } = await client.query(
    `select json_build_array(${rows("team")}, ${rows("thing")})::text as rows`,
  );
  return found[0].rows;
}

function runSql(write: Write, caller: Caller, number: number, returning: Returning | null): Promise<SqlOutcome> {
  return tables.asCaller(caller, async (client) => {
    try {
      let count = 0;
      for (const { text, values } of toSql(write, number, returning)) {
        count += (await client.query(text, [...values])).rowCount!;
      }
      await client.query("reset role");
      return { verdict: "accepted", rows: await rowsOf(client, number), count };
    } catch (error) {
      if (!(error instanceof pg.DatabaseError)) throw error;
      return { verdict: toVerdict(error.code!), rows: "", count: 0 };
    }
  });
}

/** The links between inserted rows are returned. */
function withLinks({ team, thing }: Returning): Returning {
  return { team: [...new Set([...team, "id"])], thing: [...new Set([...thing, "id", "team_id"])] };
}

/** True if the caller has the privileges for all statements. */
function mayWriteAll(write: Write, caller: Caller, number: number): Promise<boolean> {
  return tables.asCaller(caller, async (client) => {
    try {
      const links = withLinks({ team: [], thing: [] });
      for (const { text, values } of toSql(write, number, links)) await client.query(`explain ${text}`, [...values]);
      return true;
    } catch {
      return false;
    }
  });
}

/** Fields that a caller may read but not write are ignored. */
async function withoutIgnored(write: RowWrite, caller: Caller, number: number, readable: Returning): Promise<RowWrite> {
  if (write.kind === "delete") return write;
  const writable = await tables.columnsOf(caller, number, write.kind);
  const ignored = readable[write.table].filter((column) => !writable[write.table].includes(column));
  return restrictColumns(write, (column) => !ignored.includes(column));
}

async function canRead(write: RowWrite, caller: Caller, number: number, readable: Returning): Promise<boolean> {
  if (write.kind === "insert" || !readable[write.table].includes("id")) return false;
  const text = `select ${readable[write.table].join()} from public.${write.table}_${number} where id = $1`;
  return tables.asCaller(caller, async (client) => (await client.query(text, [write.id])).rowCount === 1);
}

/** GraphQL has nothing that only roles without policies are granted. */
async function isInGraphql(write: Write, { role }: Caller, number: number): Promise<boolean> {
  if (role !== "service_role") return true;
  const used = columnsUsed(write);
  const { rowCount } = await tables.owner.query(
    `select from unnest('{anon,authenticated,admin}'::name[]) as role where not exists (
      select from unnest($1::text[], $2::text[], $3::text[]) as used(name, attribute, verb)
      where not case verb when 'delete' then has_table_privilege(role, name, verb) else has_column_privilege(role, name, attribute, verb) end)`,
    [
      used.map(({ table }) => `public.${table}_${number}`),
      used.map(({ column }) => column),
      used.map(({ verb }) => verb),
    ],
  );
  return rowCount! > 0;
}
