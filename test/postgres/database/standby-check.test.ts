import { expect, test } from "vitest";
import { makeLoginSteps, makeStatementStep } from "../../../postgres/database/batch-steps.ts";
import { PostgresConnection } from "../../../postgres/database/connection.ts";
import { OwnerPool } from "../../../postgres/database/owner-pool.ts";
import { openPostgresSocket } from "../../../postgres/database/postgres-socket.ts";
import { CollectedRows } from "../../../postgres/database/result-collectors.ts";
import { isOnStandby } from "../../../postgres/database/standby-check.ts";
import { StatementShape } from "../../../postgres/database/statement-shape.ts";
import { anon, caller, open, sql } from "./open.ts";

const SCHEMA = `
  create table public.notes (id int primary key);
  grant select, insert on public.notes to anon;
  create function public.add_note() returns int language sql as 'insert into public.notes values (1) returning id';
  create function public.pretend() returns void language plpgsql as
    $$ begin raise 'cannot do this during recovery'; end $$`;
const WRITE = sql("insert into public.notes values (1)");
const ofPrimary = (url: string) => `${url}&target_session_attrs=primary`;

test("a primary's refusal of a write stays what it is, and its sessions stay open", async () => {
  await using opened = await open(SCHEMA);
  await using other = await open("", { url: ofPrimary(opened.url), ownerUrl: ofPrimary(opened.url) });
  const { database } = other;
  const readOnly = { ...anon, settings: [...anon.settings, ["transaction_read_only", "on"] as const] };
  const pidOf = async () => (await database.run(anon, sql("select pg_backend_pid()"), { pool: "write" })).rows;
  const before = await pidOf();

  const refusal = { code: "25006" };
  await expect(database.run(readOnly, WRITE)).rejects.toMatchObject(refusal);
  await expect(database.run(readOnly, WRITE, { rollback: true })).rejects.toMatchObject(refusal);
  await expect(database.run(anon, sql("select public.add_note()"), { readOnly: true })).rejects.toMatchObject(refusal);
  await expect(database.run(anon, sql("select public.pretend()"))).rejects.toMatchObject({ code: "P0001" });
  const later: unknown[] = [];
  const writing = database.transaction(readOnly, async (query) => {
    await query(WRITE).catch((error) => later.push(error.code));
    await query(sql("select 1")).catch((error) => later.push(error.code));
  });
  await expect(writing).rejects.toMatchObject(refusal);
  expect(later).toEqual(["25006", "25006"]);
  expect(await pidOf()).toEqual(before);
  expect((await database.run(caller("anon"), sql("select from public.notes"))).rowCount).toBe(0);
});

test("a primary's refusal of the owner's write stays what it is", async () => {
  await using opened = await open(SCHEMA);
  const pool = new OwnerPool({ url: ofPrimary(opened.url), applicationName: "owner", acquireTimeout: 5_000 });
  let runs = 0;
  const writing = pool.lend(async (client) => {
    runs++;
    await client.query("begin read only");
    await client.query("insert into public.notes values (1)");
  });
  await expect(writing).rejects.toMatchObject({ code: "25006" });
  expect(runs).toBe(1);
  expect((await pool.lend((client) => client.query("select 1"))).rowCount).toBe(1);
  await pool.close();
});

test("a check behind a batch that fails does not take a primary for a standby", async () => {
  await using opened = await open();
  const socket = await openPostgresSocket({ url: opened.url, applicationName: "check", connectTimeout: 5_000 });
  const connection = new PostgresConnection(
    socket,
    { ready() {}, lost() {} },
    { depth: 2, maxPrepared: 10, transactions: { isExplicit: true, keepsSettings: true, settingMode: "function" } },
  );
  const failing = sql("select 1/0");
  const steps = makeLoginSteps([makeStatementStep(new StatementShape(failing.text), failing, { sync: true })]);
  const ended = Promise.withResolvers<string>();
  connection.send({
    steps,
    main: steps.length - 1,
    mainCount: 1,
    collector: CollectedRows.ofStrings(),
    wantsFields: false,
    fresh: false,
    keepsTransaction: false,
    responseTimeoutMs: Number.POSITIVE_INFINITY,
    expected: 0,
    interruptible: null,
    isAbandoned: false,
    admits: () => true,
    end: ({ kind }) => ended.resolve(kind),
  });
  const isStandby = isOnStandby(connection);
  expect(await ended.promise).toBe("refused");
  expect(await isStandby).toBe(false);
  await connection.close();
});
