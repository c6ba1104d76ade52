import fc from "fast-check";
import { beforeAll, describe, expect, test } from "vitest";
import { useFixture } from "../../../fixture.ts";
import { propertyRuns } from "../../../property-runs.ts";
import { openOpenApiFixture } from "./openapi-fixture.ts";
import type { Operation, ReadDocument } from "./operations.ts";
import { type Manner, type Request, requestsOf } from "./requests.ts";

const ROLES = ["anon", "authenticated", "admin", "service_role"];
const VERSIONS = [1, 2];
const AUDIENCES = ROLES.flatMap((role) => VERSIONS.map((version) => [role, version] as const));
/** The services and roles that differ most, for the walk through all operations. */
const WALKED = [
  ["anon", 1],
  ["authenticated", 1],
  ["authenticated", 2],
  ["admin", 2],
] as const;
/** A password is hashed for each of these, which takes as long as a hundred other requests. */
const DEAR = /^(auth|session)\./;
/** The number of requests of all kinds; 20000 for a thorough look. */
const FUZZ = propertyRuns(2_400);
const AT_ONCE = 16;
/** `/admin/v1` runs at most so many explanations and statements at once, and refuses more with 503. */
const OF_ADMINISTRATORS_AT_ONCE = 4;

const fixture = useFixture(openOpenApiFixture);
beforeAll(() => fixture.populate());

type Outcome = { readonly request: Request; readonly status: number; readonly objection: string | null };

async function send(request: Request, document: ReadDocument, role: string): Promise<Outcome> {
  const { operation, url, headers, body } = request;
  const result = await fixture.ask({ method: operation.method, url, headers, body }, role);
  return { request, status: result.status, objection: document.judge(operation, result) };
}

async function sendAll(requests: readonly Request[], document: ReadDocument, role: string): Promise<Outcome[]> {
  const outcomes: Outcome[] = [];
  const waiting = [...requests];
  const sendNext = async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) outcomes.push(await send(next, document, role));
  };
  await Promise.all(Array.from({ length: role === "admin" ? OF_ADMINISTRATORS_AT_ONCE : AT_ONCE }, sendNext));
  return outcomes;
}

function objections(outcomes: readonly Outcome[]): string[] {
  return outcomes.flatMap(({ request: { operation, url, headers, body }, status, objection }) =>
    objection === null
      ? []
      : [`${operation.method} ${url} ${JSON.stringify(headers)} ${body ?? ""} -> ${status} ${objection}`],
  );
}

function sampled(operation: Operation, document: ReadDocument, responseOptions: Manner, count: number): Request[] {
  return fc.sample(requestsOf(operation, document, responseOptions), count);
}

describe("each documented operation", () => {
  test.each(WALKED)(
    "responds to %s in version %i as documented, for valid and invalid requests",
    async (role, version) => {
      const document = await fixture.documentFor(role, version);
      expect(document.operations.length).toBeGreaterThan(30);
      const reached = new Map<string, Set<number>>();
      for (const operation of document.operations) {
        const count = DEAR.test(operation.id) ? 1 : 4;
        const requests = [
          ...sampled(operation, document, "as documented", count),
          ...sampled(operation, document, "wild", count),
        ];
        const outcomes = await sendAll(requests, document, role);
        expect(objections(outcomes)).toEqual([]);
        reached.set(operation.id, new Set(outcomes.map(({ status }) => status)));
        await fixture.populate();
      }
      // The walk is none if everything is refused.
      const succeeded = [...reached].filter(([, statuses]) => [...statuses].some((status) => status < 400));
      expect(succeeded.length).toBeGreaterThan(10);
    },
  );
});

describe("the checker of responses", () => {
  test("rejects an undocumented status, body or error, and nothing else", async () => {
    const document = await fixture.documentFor("anon", 1);
    const list = document.operations.find(({ id }) => id === "root.users.list")!;
    const result = (status: number, body: unknown) => {
      return document.judge(list, { status, contentType: "application/json", text: JSON.stringify(body) });
    };
    expect(result(200, [{ id: 1, name: "Ann" }])).toBeNull();
    expect(result(200, [{ id: "one" }])).not.toBeNull();
    expect(result(200, { data: [] })).not.toBeNull();
    expect(result(202, [])).not.toBeNull();
    expect(result(400, { message: "no" })).not.toBeNull();
    expect(result(500, { error: {} })).not.toBeNull();
  });
});

describe("requests generated from the document", () => {
  test(`cause no internal error in ${FUZZ} requests, and no undocumented response`, async () => {
    const perAudience = Math.ceil(FUZZ / AUDIENCES.length);
    let sent = 0;
    let succeeded = 0;
    for (const [role, version] of AUDIENCES) {
      const document = await fixture.documentFor(role, version);
      const usual = document.operations.filter(({ id }) => !DEAR.test(id));
      const manners: readonly Manner[] = ["as documented", "wild"];
      for (let left = perAudience; left > 0; left -= 100) {
        const requests = Array.from({ length: Math.min(100, left) }, (_, index) => {
          const operation = usual[(sent + index * 7) % usual.length]!;
          return sampled(operation, document, manners[index % 2]!, 1)[0]!;
        });
        const outcomes = await sendAll(requests, document, role);
        expect(objections(outcomes)).toEqual([]);
        sent += requests.length;
        succeeded += outcomes.filter(({ status }) => status < 400).length;
        await fixture.populate();
      }
    }
    expect(sent).toBeGreaterThanOrEqual(FUZZ);
    expect(succeeded).toBeGreaterThan(sent / 10);
  });
});
