import fc from "fast-check";
import { expect, test } from "vitest";
import { connect } from "../../db/callers.ts";
import { useFixture } from "../../fixture.ts";
import { propertyRuns } from "../../property-runs.ts";
import { keepRows } from "../../restore-rows.ts";
import { isReference, type PartResponse, type Reference, stateOf, TABLES, valueAt } from "../batch/batch-tables.ts";
import { openResources, type Sent } from "./open-resources.ts";

const batching = useFixture(() => openResources({ template: "empty", sql: TABLES }));
const separate = useFixture(() => openResources({ template: "empty", sql: TABLES }));

type Operation = {
  readonly method: string;
  readonly path: readonly (string | Reference)[];
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
};

const names = fc.constantFrom("ann", "bob", "eve", "one", "much too long");
const totals = fc.constantFrom(0, 5, "12345678901234567890.125", -1, "x", 2.5);
const notes = fc.constantFrom(null, "plain", "change", "refuse");

/** A number, or the id in the response of an earlier operation. */
function idValue(index: number): fc.Arbitrary<string | Reference> {
  const ids = fc.constantFrom("1", "2", "3", "4", "5", "99");
  if (index === 0) return ids;
  const pointers = fc.constantFrom("/id", "/id", "/id", "/0/id", "/data/0/id");
  const references = fc.tuple(fc.nat(index - 1), pointers).map(([part, pointer]) => ({ $ref: `${part}#${pointer}` }));
  return fc.oneof({ arbitrary: ids, weight: 2 }, { arbitrary: references, weight: 1 });
}

function operationAt(index: number): fc.Arbitrary<Operation> {
  const id = idValue(index);
  const order = fc.record({ total: totals, note: notes });
  const inserted = fc.tuple(order, id).map(([row, customer]) => ({ ...row, customer_id: customer }));
  const tags = fc.constantFrom({}, {}, {}, { "If-Match": '"other"' });
  return fc.oneof(
    names.map((name) => ({ method: "POST", path: ["/customers"], body: { name } })),
    inserted.map((body) => ({ method: "POST", path: ["/orders"], body })),
    inserted.map((row) => ({ method: "POST", path: ["/orders"], body: [row] })),
    fc.tuple(id, order).map(([key, body]) => ({ method: "POST", path: ["/customers/", key, "/orders"], body })),
    fc
      .tuple(id, order, tags)
      .map(([key, body, headers]) => ({ method: "PATCH", path: ["/orders/", key], body, headers })),
    id.map((key) => ({ method: "DELETE", path: ["/orders/", key] })),
    id.map((key) => ({ method: "GET", path: ["/orders/", key] })),
    id.map((key) => ({ method: "GET", path: ["/orders?fields=id,total,customer.name&sort=id&customer=", key] })),
    fc.constant({ method: "POST", path: ["/nowhere"], body: {} }),
  );
}

const batches = fc
  .constantFrom(1, 2, 3, 4, 5)
  .chain((length) => fc.tuple(...Array.from({ length }, (_, index) => operationAt(index)))) as fc.Arbitrary<
  readonly Operation[]
>;

/** Removes the members that differ between any two requests. */
function withoutTimes(body: unknown): unknown {
  if (typeof body !== "object" || body === null || !("error" in body)) return body;
  return { ...body, error: { ...(body.error as object), requestId: "", timestamp: "" } };
}

/** The responses of the same requests, each by itself, until the first that fails; null where a reference leads nowhere. */
async function sendEach(operations: readonly Operation[], as: Sent["as"]): Promise<PartResponse[] | null> {
  const responses: PartResponse[] = [];
  const resolve = (value: unknown): unknown => {
    if (isReference(value)) return valueAt(value, responses);
    if (Array.isArray(value)) return value.map(resolve);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, resolve(item)]));
  };
  for (const { method, path, headers, body } of operations) {
    const pieces = path.map(resolve);
    if (pieces.includes(undefined)) return null;
    const sent = { method, ...(headers && { headers }), ...(body !== undefined && { body: resolve(body) }) };
    const response = await separate.ask(`/api/v1${pieces.join("")}`, { ...sent, ...(as !== undefined && { as }) });
    responses.push({ status: response.status, body: withoutTimes(response.body) });
    if (response.status >= 400) break;
  }
  return responses;
}

/** Each with a customer to whose orders the caller has access. */
const CALLERS = [
  ["anon", undefined, "4"],
  ["the first user", 1, "1"],
  ["the second user", 2, "3"],
] as const;

/** Random batches of a caller without many rights may all fail. */
const successfulBatch = (customer: string): readonly Operation[] => [
  { method: "POST", path: ["/orders"], body: { total: 5, note: "plain", customer_id: customer } },
  { method: "GET", path: ["/orders/", { $ref: "0#/id" }] },
];

test.each(CALLERS)(
  "a random batch of %s leaves and answers what single requests do, or changes nothing",
  async (_who, as, customer) => {
    const counts = { done: 0, failed: 0 };
    const [first, second] = await Promise.all(
      [batching, separate].map(({ owner }) => connect(owner.options.connectionString!)),
    );
    const property = fc.asyncProperty(batches, async (operations) => {
      const before = await stateOf(first!);
      const restore = await keepRows(second!);
      const responses = await sendEach(operations, as);
      const sent = { method: "POST", body: { operations }, ...(as !== undefined && { as }) };
      const { status, body } = await batching.ask("/api/v1/batch", sent);
      const isDone = responses?.every((each) => each.status < 400) ?? false;
      counts[isDone ? "done" : "failed"]++;
      if (isDone) {
        expect(status).toBe(200);
        expect(body.data.map((each: PartResponse) => ({ status: each.status, body: each.body }))).toEqual(responses);
      } else {
        await restore();
        expect(status).toBeGreaterThanOrEqual(400);
        expect(await stateOf(first!)).toEqual(before);
        const last = responses?.at(-1);
        if (responses && "index" in body && body.error.code !== "UNKNOWN_REFERENCE") {
          expect({ status, body: withoutTimes(body) }).toEqual({
            status: last!.status,
            body: { ...(last!.body as object), index: responses.length - 1 },
          });
        }
      }
      expect(await stateOf(first!)).toEqual(await stateOf(second!));
    });
    await fc
      .assert(property, { numRuns: propertyRuns(400), endOnFailure: true, examples: [[successfulBatch(customer)]] })
      .finally(() => Promise.all([first!.end(), second!.end()]));
    expect(counts.done).toBeGreaterThan(0);
    expect(counts.failed).toBeGreaterThan(0);
  },
);
