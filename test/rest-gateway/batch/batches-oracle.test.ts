import fc from "fast-check";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Service } from "../../../service/wiring/service.ts";
import { cloneDatabase } from "../../database.ts";
import { connect } from "../../db/callers.ts";
import { tokenFor } from "../../graphql.ts";
import { propertyRuns } from "../../property-runs.ts";
import { keepRows } from "../../restore-rows.ts";
import { serve } from "../../serve.ts";
import { isReference, type PartResponse, type Reference, stateOf, TABLES, valueAt } from "./batch-tables.ts";

const CALLERS = [
  ["anon", null],
  ["authenticated", 1],
  ["authenticated", 2],
  ["service_role", 1],
] as const;
type Role = (typeof CALLERS)[number][0];

type Value = string | number | null | Reference;
type Row = Readonly<Record<string, Value>>;
type ResolvedRow = Readonly<Record<string, string | number | null>>;

/** A request, in the words of SQL. */
type Step = {
  readonly verb: "insert" | "update" | "delete" | "select" | "call";
  readonly table: string;
  readonly rows: readonly Row[];
  /** The condition on `id`; null selects all rows. */
  readonly id: { readonly operator: "eq" | "gt"; readonly value: Value } | null;
  readonly returns: boolean;
  readonly singular: boolean;
  readonly maxAffected: number | null;
};

const names = fc.constantFrom("ann", "bob", "eve", "one", "much too long");
const ids = fc.constantFrom(1, 2, 3, 4, 5, 6, 99);
const totals = fc.constantFrom<Value>(0, 5, "12345678901234567890.125", -1, "x", 2.5);
/** The plan of an update that changes no row decides whether Postgres reads its values. */
const changedTotals = totals.filter((value) => value !== "x");
const notes = fc.constantFrom(null, "plain", "change", "drop", "refuse");

/** A number, or the id in the response of an earlier part. */
function idValue(index: number): fc.Arbitrary<Value> {
  if (index === 0) return ids;
  const pointers = fc.constantFrom("/0/id", "/0/id", "/0/id", "/id", "/1/id", "/0/customer_id");
  const references = fc.tuple(fc.nat(index - 1), pointers).map(([part, pointer]) => ({ $ref: `${part}#${pointer}` }));
  return fc.oneof({ arbitrary: ids, weight: 2 }, { arbitrary: references, weight: 1 });
}

const OPTIONAL = { requiredKeys: [] };

function customerRows(): fc.Arbitrary<readonly Row[]> {
  const row = fc.record({ name: names }, { requiredKeys: ["name"] });
  return fc.array(row, { minLength: 1, maxLength: 2 });
}

function orderRows(index: number): fc.Arbitrary<readonly Row[]> {
  const row = fc.record({ customer_id: idValue(index), total: totals, note: notes });
  return fc.array(row, { minLength: 1, maxLength: 2 });
}

function linkRows(index: number): fc.Arbitrary<readonly Row[]> {
  const row = fc.record({ id: fc.constantFrom(3, 4, 5, 6), next_id: fc.oneof(idValue(index), fc.constant(null)) });
  return fc.array(row, { minLength: 1, maxLength: 2 });
}

/** Several rows that are changed are returned in the order of the table's file, which may differ between databases. */
function withoutOrder(step: Step): Step {
  return step.id?.operator === "gt" && step.verb !== "select" ? { ...step, returns: false } : step;
}

function stepAt(index: number, tables: readonly string[]): fc.Arbitrary<Step> {
  const options = {
    returns: fc.boolean().map((isFirst) => isFirst || index % 2 === 0),
    singular: fc.nat(9).map((number) => number === 0),
    maxAffected: fc.constantFrom(null, null, null, null, 1),
  };
  const none = { rows: fc.constant([]), id: fc.constant(null) };
  const id = fc.record({
    operator: fc.constantFrom("eq" as const, "eq" as const, "gt" as const),
    value: idValue(index),
  });
  const step = (verb: Step["verb"], table: string, parts: object) =>
    fc
      .record({ verb: fc.constant(verb), table: fc.constant(table), ...options, ...none, ...parts })
      .map((whole) => withoutOrder(whole as Step));
  const rowsOf: Record<string, fc.Arbitrary<readonly Row[]>> = {
    customers: customerRows(),
    orders: orderRows(index),
    links: linkRows(index),
  };
  const changesOf: Record<string, fc.Arbitrary<Row>> = {
    customers: fc.record({ name: names }),
    orders: fc.record({ total: changedTotals, note: notes }, OPTIONAL).filter((row) => Object.keys(row).length > 0),
    links: fc.record({ next_id: idValue(index) }),
  };
  const steps = tables.flatMap((table) => [
    step("insert", table, { rows: rowsOf[table]! }),
    step("insert", table, { rows: rowsOf[table]! }),
    step("update", table, { rows: changesOf[table]!.map((row) => [row]), id }),
    step("delete", table, { id }),
    step("select", table, { id: fc.option(id) }),
  ]);
  const call = step("call", "add_order", {
    rows: fc.record({ customer: idValue(index), total: totals }).map((row) => [row]),
  });
  const missing = step("insert", "nowhere", { rows: fc.constant([{ id: 1 }]) });
  const denied = step("insert", "logs", { rows: fc.constant([{ what: "written" }]) });
  const weighted = [...steps, call].map((arbitrary) => ({ arbitrary, weight: 6 }));
  return fc.oneof(...weighted, { arbitrary: missing, weight: 1 }, { arbitrary: denied, weight: 2 });
}

function batches(tables: readonly string[]): fc.Arbitrary<readonly Step[]> {
  const lengths = fc.constantFrom(1, 2, 3, 4, 5, 6);
  return lengths.chain((length) =>
    fc.tuple(...Array.from({ length }, (_, index) => stepAt(index, tables))),
  ) as fc.Arbitrary<readonly Step[]>;
}

type Part = {
  readonly method: string;
  readonly path: string | readonly (string | Reference)[];
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: unknown;
};

function toPart({ verb, table, rows, id, returns, singular, maxAffected }: Step): Part {
  const conditions = id && [`id=${id.operator}.`, id.value];
  const order = verb === "select" ? `${id ? "&" : "?"}order=id` : "";
  const pieces = [`/${verb === "call" ? "rpc/" : ""}${table}`, ...(conditions ? ["?", ...conditions] : []), order];
  const path: (string | Reference)[] = [];
  for (const piece of pieces) {
    if (isReference(piece)) path.push(piece);
    else if (typeof path.at(-1) === "string") path[path.length - 1] += String(piece);
    else path.push(String(piece));
  }
  const isWrite = verb === "insert" || verb === "update" || verb === "delete";
  const prefer = [
    isWrite && `return=${returns ? "representation" : "minimal"}`,
    isGuarded({ verb, maxAffected }) && `handling=strict, max-affected=${maxAffected}`,
  ].filter((text) => typeof text === "string");
  const method = { insert: "POST", update: "PATCH", delete: "DELETE", select: "GET", call: "POST" }[verb];
  return {
    method,
    path: path.length === 1 ? String(path[0]) : path,
    headers: {
      ...(prefer.length > 0 && { Prefer: prefer.join(", ") }),
      ...(singular && { Accept: "application/vnd.pgrst.object+json" }),
    },
    ...(verb === "insert" && { body: rows }),
    ...((verb === "update" || verb === "call") && { body: rows[0] }),
  };
}

/** PostgREST knows this guard for writes of rows only. */
function isGuarded({ verb, maxAffected }: Pick<Step, "verb" | "maxAffected">): boolean {
  return maxAffected !== null && (verb === "update" || verb === "delete");
}

/** Thrown where SQL alone would not fail. */
class Guard extends Error {}

type Resolve = <T>(value: T) => T | string | number | null;

function sqlOf({ verb, table, rows, id, returns }: Step, resolve: Resolve) {
  const values: unknown[] = [];
  const resolved = rows.map((row) =>
    Object.fromEntries(Object.entries(row).map(([name, value]) => [name, resolve(value)])),
  ) as ResolvedRow[];
  const columns = Object.keys(resolved[0] ?? {}).join(", ");
  const bind = (value: unknown) => `$${values.push(value)}`;
  const json = () => bind(JSON.stringify(verb === "insert" ? resolved : resolved[0]));
  const operator = id?.operator === "gt" ? ">" : "=";
  const where = id ? `where id ${operator} ${bind(String(resolve(id.value)))}::int` : "";
  const returning = returns ? "returning *" : "";
  const text = {
    insert: () =>
      `insert into public.${table} (${columns}) select ${columns} from json_populate_recordset(null::public.${table}, ${json()}) ${returning}`,
    update: () =>
      `update public.${table} set (${columns}) = (select ${columns} from json_populate_record(null::public.${table}, ${json()})) ${where} ${returning}`,
    delete: () => `delete from public.${table} ${where} ${returning}`,
    select: () => `select * from public.${table} ${where} order by id`,
    call: () =>
      `select * from public.${table}(${Object.entries(resolved[0]!)
        .map(([name, value]) => `${name} => ${bind(value)}`)
        .join(", ")})`,
  }[verb]();
  return { text, values };
}

/** The rows of each statement, or which one has failed; null for the commit. */
type Expected =
  | { readonly failed: number | null }
  | { readonly failed: false; readonly results: readonly (readonly ResolvedRow[])[] };

/** The same statements in one transaction of SQL. */
async function runBySql(owner: pg.Client, steps: readonly Step[], role: Role, sub: number | null): Promise<Expected> {
  const results: ResolvedRow[][] = [];
  let current: number | null = null;
  await owner.query("begin");
  try {
    await owner.query("select set_config('role', $1, true), set_config('request.jwt.claims', $2, true)", [
      role,
      JSON.stringify(sub === null ? { role } : { role, sub: String(sub) }),
    ]);
    for (const [index, step] of steps.entries()) {
      current = index;
      const { text, values } = sqlOf(
        step,
        (value) => (isReference(value) ? lookUp(value, steps, results) : value) as never,
      );
      const { rows, rowCount } = await owner.query(text, values);
      if (isGuarded(step) && rowCount! > step.maxAffected!) throw new Guard();
      if (step.singular && rowCount !== 1) throw new Guard();
      results.push(rows);
    }
    current = null;
    await owner.query("commit");
    return { failed: false, results };
  } catch (error) {
    await owner.query("rollback");
    if (!(error instanceof pg.DatabaseError) && !(error instanceof Guard)) throw error;
    return { failed: current };
  }
}

function answersRows({ verb, returns }: Step): boolean {
  return verb === "select" || verb === "call" || returns;
}

function lookUp({ $ref }: Reference, steps: readonly Step[], results: readonly (readonly ResolvedRow[])[]) {
  const [part = "", pointer = ""] = $ref.split("#");
  const step = steps[Number(part)]!;
  if (!answersRows(step)) throw new Guard();
  const rows = results[Number(part)]!;
  const body: unknown = step.singular ? rows[0] : rows;
  let value = body as Record<string, unknown> | undefined;
  for (const name of pointer.split("/").slice(1)) value = value?.[name] as typeof value;
  if (value === undefined) throw new Guard();
  return value as unknown as number;
}

type ServedDatabase = { readonly owner: pg.Client; readonly service: Service };

let batching: ServedDatabase;
let separate: ServedDatabase;
let plain: pg.Client;
let restoreFirstRows: () => Promise<void>;
const opened = new AsyncDisposableStack();
beforeAll(async () => {
  const openDatabase = async () => {
    const database = await cloneDatabase("empty");
    opened.defer(() => database.drop());
    const owner = await connect(database.ownerUrl);
    opened.defer(() => owner.end());
    await owner.query(TABLES);
    return { database, owner };
  };
  const openSide = async (): Promise<ServedDatabase> => {
    const { database, owner } = await openDatabase();
    const service = await serve(database, { ADMIN_PORT: "0", REST_REQUIRE_APIKEY: "false" });
    opened.defer(() => service.stop());
    return { owner, service };
  };
  batching = await openSide();
  restoreFirstRows = await keepRows(batching.owner);
  separate = await openSide();
  plain = (await openDatabase()).owner;
});
afterAll(() => opened.disposeAsync());

function authorization(role: Role, sub: number | null): Record<string, string> {
  return sub === null ? {} : { Authorization: `Bearer ${tokenFor(sub, { role })}` };
}

async function sendBatch(parts: readonly Part[], headers: Record<string, string>) {
  const response = await fetch(`${batching.service.url}/rest/v1/`, {
    method: "POST",
    headers: { "Content-Type": "application/vnd.batch+json", ...headers },
    body: JSON.stringify(parts),
  });
  return { status: response.status, body: (await response.json()) as unknown };
}

/** The responses of the same requests, each by itself, until the first that fails. */
async function sendEach(parts: readonly Part[], headers: Record<string, string>): Promise<PartResponse[] | null> {
  const responses: PartResponse[] = [];
  const resolve = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(resolve);
    if (isReference(value)) return valueAt(value, responses);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, resolve(item)]));
  };
  for (const { method, path, headers: own, body } of parts) {
    const pieces = [path].flat().map((piece) => (typeof piece === "string" ? piece : valueAt(piece, responses)));
    if (pieces.includes(undefined)) return null;
    const sent = body === undefined ? undefined : JSON.stringify(resolve(body));
    const response = await fetch(`${separate.service.url}/rest/v1${pieces.join("")}`, {
      method,
      headers: { ...headers, ...own, ...(sent !== undefined && { "Content-Type": "application/json" }) },
      ...(sent !== undefined && { body: sent }),
    });
    const text = await response.text();
    responses.push({ status: response.status, body: text === "" ? null : JSON.parse(text) });
    if (response.status >= 400) break;
  }
  return responses;
}

const REFERENCE_FAILED = /UNKNOWN_REFERENCE/;

async function compare(steps: readonly Step[], role: Role, sub: number | null, comparesEach: boolean): Promise<string> {
  const parts = steps.map(toPart);
  const headers = authorization(role, sub);
  const before = await stateOf(batching.owner);
  const expected = await runBySql(plain, steps, role, sub);
  const answer = await sendBatch(parts, headers);
  const after = await stateOf(batching.owner);
  expect(after).toEqual(await stateOf(plain));
  if (expected.failed === false) expect(answer.status).toBe(200);
  else {
    expect(answer.status).toBeGreaterThanOrEqual(400);
    expect(after).toEqual(before);
    if (expected.failed !== null) expect(answer.body).toMatchObject({ index: expected.failed });
  }
  if (comparesEach) await compareEach(parts, headers, answer, expected);
  return expected.failed === false ? "committed" : expected.failed === null ? "failed at the commit" : "failed";
}

/** Removes the row that an error names: if several violate a constraint, Postgres names the one that it meets first in the table's file. */
function withoutRow(answer: unknown): unknown {
  const named = /Failing row contains \([^)]*\)|(?<=Key \(id\)=)\(\d+\)(?= is still referenced)/;
  return JSON.parse(JSON.stringify(answer).replace(named, "a row"));
}

/** Single requests on another database have the same responses. */
async function compareEach(
  parts: readonly Part[],
  headers: Record<string, string>,
  answer: { readonly status: number; readonly body: unknown },
  expected: Expected,
): Promise<void> {
  const restore = await keepRows(separate.owner);
  const responses = await sendEach(parts, headers);
  if (expected.failed === false) {
    expect((answer.body as PartResponse[]).map(({ status, body }) => ({ status, body }))).toEqual(responses);
    return;
  }
  await restore();
  if (REFERENCE_FAILED.test(JSON.stringify(answer.body))) return;
  const failed = responses!.at(-1)!;
  const own = { status: failed.status, body: { ...(failed.body as object), index: expected.failed } };
  expect(withoutRow(answer)).toEqual(withoutRow(own));
}

describe("a random batch", () => {
  test.each([
    ["leaves and answers what single requests do, or changes nothing", ["customers", "orders"], true],
    ["with deferred constraints leaves what one transaction of SQL does", ["orders", "links"], false],
  ] as const)("%s", async (_title, tables, comparesEach) => {
    const outcomes = new Map<string, number>();
    for (const [role, sub] of CALLERS) {
      const property = fc.asyncProperty(batches(tables), async (steps) => {
        const outcome = await compare(steps, role, sub, comparesEach);
        outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      });
      await fc.assert(property, { numRuns: propertyRuns(500), endOnFailure: true });
    }
    for (const count of outcomes.values()) expect(count).toBeGreaterThan(0);
    expect([...outcomes.keys()]).toEqual(expect.arrayContaining(["committed", "failed"]));
  });
});

/** Each fails whatever was done before it. */
const FAILURES: readonly (readonly [string, Part, { readonly status: number; readonly code: string }])[] = [
  ["a unique constraint", post("/customers", { name: "one" }), { status: 409, code: "23505" }],
  ["a check", post("/orders", { customer_id: 1, total: -1 }), { status: 400, code: "23514" }],
  ["a foreign key", { method: "DELETE", path: "/customers?id=eq.1", headers: {} }, { status: 409, code: "23503" }],
  ["a policy", post("/orders", { customer_id: 3, total: 1 }), { status: 403, code: "42501" }],
  ["a privilege", post("/logs", { what: "written" }), { status: 403, code: "42501" }],
  ["a trigger", post("/orders", { customer_id: 1, total: 1, note: "refuse" }), { status: 418, code: "PT418" }],
  ["a missing table", post("/nowhere", { id: 1 }), { status: 404, code: "PGRST205" }],
  ["a missing column", post("/orders", { nothing: 1 }), { status: 400, code: "PGRST204" }],
  ["a value of another type", post("/orders", { customer_id: "x", total: 1 }), { status: 400, code: "22P02" }],
  [
    "a filter that cannot be parsed",
    { method: "GET", path: "/orders?id=is.what", headers: {} },
    { status: 400, code: "PGRST100" },
  ],
  [
    "max-affected",
    { method: "DELETE", path: "/orders?id=gt.0", headers: { Prefer: "handling=strict, max-affected=0" } },
    { status: 400, code: "PGRST124" },
  ],
  [
    "a singular response",
    {
      ...post("/orders?id=eq.99", { note: "x" }),
      method: "PATCH",
      headers: { Accept: "application/vnd.pgrst.object+json" },
    },
    { status: 406, code: "PGRST116" },
  ],
];

function post(path: string, body: object): Part {
  return { method: "POST", path, headers: { Prefer: "return=representation" }, body };
}

describe("a batch in which a request fails because of", () => {
  beforeAll(() => restoreFirstRows());

  const good: readonly Part[] = [
    post("/customers", { name: "zoe" }),
    post("/orders", { customer_id: 1, total: 1 }),
    post("/orders", { customer_id: { $ref: "0#/0/id" }, total: 2 }),
    { method: "GET", path: "/orders?customer_id=eq.1&order=id", headers: {} },
    { ...post("/orders?id=eq.1", { note: "changed" }), method: "PATCH" },
  ];

  test.each(FAILURES)("%s, at each index, changes nothing", async (_cause, failing, { status, code }) => {
    const before = await stateOf(batching.owner);
    const headers = authorization("authenticated", 1);
    for (let index = 0; index <= good.length; index++) {
      // References to an earlier request follow it to its new place.
      const later = good
        .slice(index)
        .map((part) => JSON.parse(JSON.stringify(part).replace('"0#', `"${index === 0 ? 1 : 0}#`)));
      const answer = await sendBatch([...good.slice(0, index), failing, ...later], headers);
      expect(answer).toEqual({ status, body: expect.objectContaining({ code, index }) });
      expect(await stateOf(batching.owner)).toEqual(before);
    }
  });
});
