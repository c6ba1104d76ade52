import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { HttpError } from "../../../../http/http-error.ts";
import { NO_BODY } from "../../../../rest-gateway/table/parse/body.ts";
import { parseTableRequest, type RawTableRequest } from "../../../../rest-gateway/table/parse/request.ts";
import { propertyRuns } from "../../../property-runs.ts";
import { contentOf } from "./content.ts";

const deployment = {
  schemas: ["api"],
  rootFunction: null,
  describesItself: true,
  txOverride: true,
  timeZones: new Set(["UTC"]),
};

const WORDS = [
  ..."()[]{}\"'\\.,:;!*-><=&?%+/$#@~|^ \t\n",
  ...[
    "->",
    "->>",
    "::",
    "...",
    "()",
    "(any)",
    "(all)",
    "count()",
    "not.",
    "and",
    "or",
    "in.(",
    "is.",
    "eq.",
    "fts(",
    "null",
  ],
  ...[
    "select=",
    "order=",
    "limit=",
    "offset=",
    "columns=",
    "on_conflict=",
    "id=",
    "rel.",
    "rel(",
    ".sum()",
    "!inner",
    "asc",
  ],
  ...[
    "%",
    "%2",
    "%00",
    "%FF",
    "%C3%A9",
    "é",
    "名",
    "😀",
    "\uFFFD",
    "1",
    "-1",
    "99999999999999999999",
    "__proto__",
    "constructor",
  ],
  ...["';drop table x;--", "\u202e", "a".repeat(50)],
];
const text = fc.oneof(
  fc.array(fc.constantFrom(...WORDS), { maxLength: 15 }).map((words) => words.join("")),
  fc.string({ unit: "binary", maxLength: 20 }),
);
const encoded = text.map((value) => encodeURIComponent(value));

const request: fc.Arbitrary<Omit<RawTableRequest, "content"> & { body: Buffer }> = fc.record({
  method: fc.constantFrom("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"),
  path: fc.oneof(
    fc.constantFrom("/films", "/rpc/add", "/"),
    text.map((value) => `/${value}`),
  ),
  rawQuery: fc.oneof(
    text,
    fc
      .array(fc.tuple(fc.constantFrom("select", "order", "or", "and", "id", "rel.limit", "columns"), encoded), {
        maxLength: 3,
      })
      .map((pairs) => pairs.map((pair) => pair.join("=")).join("&")),
  ),
  headers: fc.record(
    {
      accept: text,
      prefer: text,
      range: text,
      "content-type": fc.oneof(
        fc.constantFrom("application/json", "text/csv", "application/x-www-form-urlencoded", "text/plain"),
        text,
      ),
      "accept-profile": fc.constantFrom("api", "private", ""),
    },
    { requiredKeys: [] },
  ) as fc.Arbitrary<RawTableRequest["headers"]>,
  body: fc.oneof(
    text.map((value) => Buffer.from(value)),
    fc.json().map((value) => Buffer.from(value)),
    fc.uint8Array({ maxLength: 20 }).map((bytes) => Buffer.from(bytes)),
  ),
});

describe("hostile requests", () => {
  test("are parsed, or refused with an error", () => {
    let refused = 0;
    let read = 0;
    fc.assert(
      fc.property(request, (raw) => {
        try {
          const content = contentOf(raw.body, raw.headers["content-type"]);
          parseTableRequest({ ...raw, content }, deployment);
          read += 1;
        } catch (error) {
          expect(error).toBeInstanceOf(HttpError);
          expect((error as HttpError).status).toBeGreaterThanOrEqual(400);
          expect((error as HttpError).status).toBeLessThan(500);
          refused += 1;
        }
      }),
      { numRuns: propertyRuns(5000) },
    );
    // Both happen, so each means something.
    expect(read).toBeGreaterThan(100);
    expect(refused).toBeGreaterThan(100);
  });

  test.each([
    ["a name that never ends", `select=${"a".repeat(60_000)}`],
    ["quotes that are never closed", `select=${'"\\'.repeat(30_000)}`],
    ["parentheses that are never closed", `select=${"a(".repeat(30_000)}`],
    ["trees that are never closed", `or=${"(or".repeat(20_000)}`],
    ["arrows without end", `select=a${"->b".repeat(20_000)}`],
    ["hints without end", `select=a${"!b".repeat(30_000)}`],
    ["a list without end", `id=in.(${"1,".repeat(30_000)})`],
    ["spaces without end", `select=${" ".repeat(60_000)}!`],
    ["dashes without end", `${"-a".repeat(30_000)}=eq.1`],
    ["a relation of a relation without end", `or=(${"a.".repeat(30_000)}a.eq.1)`],
    ["dots without end", `${"a.".repeat(30_000)}a=eq.1`],
  ])("%s are answered all the same", (_what, rawQuery) => {
    const raw = { method: "GET", path: "/films", rawQuery, headers: {}, content: NO_BODY };
    try {
      parseTableRequest(raw, deployment);
    } catch (error) {
      expect(error).toBeInstanceOf(HttpError);
    }
  });
});
