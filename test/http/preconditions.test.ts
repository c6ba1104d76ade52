import type { IncomingHttpHeaders } from "node:http";
import { expect, test } from "vitest";
import { isMet, parsePreconditions } from "../../http/preconditions.ts";

test.each([
  [{}, []],
  [{ "if-match": '"abc"' }, [{ negated: false, any: false, digests: ["abc"] }]],
  [{ "if-match": '"abc.def", "ghi"' }, [{ negated: false, any: false, digests: ["abc", "ghi"] }]],
  [{ "if-match": 'W/"abc", "ghi"' }, [{ negated: false, any: false, digests: ["ghi"] }]],
  [{ "if-match": "*" }, [{ negated: false, any: true, digests: [] }]],
  [{ "if-match": "abc" }, [{ negated: false, any: false, digests: [] }]],
  [{ "if-none-match": 'W/"abc"' }, [{ negated: true, any: false, digests: ["abc"] }]],
])("%j", (headers, preconditions) => {
  expect(parsePreconditions(headers)).toEqual(preconditions);
});

test("a precondition holds or fails", () => {
  const met = (headers: IncomingHttpHeaders) =>
    parsePreconditions(headers).map((precondition) => isMet(precondition, "abc"));
  expect(met({ "if-match": '"abc"' })).toEqual([true]);
  expect(met({ "if-match": '"other"' })).toEqual([false]);
  expect(met({ "if-match": "*" })).toEqual([true]);
  expect(met({ "if-none-match": '"abc"' })).toEqual([false]);
  expect(met({ "if-none-match": "*" })).toEqual([false]);
  expect(met({ "if-match": '"abc"', "if-none-match": '"other"' })).toEqual([true, true]);
});
