import { describe, expect, test } from "vitest";
import { type Preferences, parsePreferences } from "../../../../rest-gateway/table/parse/headers.ts";
import { parseErrorOf } from "./parse-error.ts";

const NONE: Preferences = {
  resolution: null,
  return: null,
  count: null,
  tx: null,
  missing: null,
  nested: null,
  removed: null,
  operators: null,
  etag: null,
  handling: null,
  timezone: null,
  maxAffected: null,
};
const timeZones = new Set(["UTC", "America/Los_Angeles"]);
const parse = (header?: string) => parsePreferences(header, { txOverride: true, timeZones });

describe("Prefer", () => {
  test.each<[string | undefined, Partial<Preferences>]>([
    [undefined, {}],
    ["", {}],
    ["return=representation", { return: "representation" }],
    ["return=minimal", { return: "minimal" }],
    ["return=headers-only", { return: "headers-only" }],
    ["count=exact", { count: "exact" }],
    ["count=planned", { count: "planned" }],
    ["count=estimated", { count: "estimated" }],
    ["resolution=merge-duplicates", { resolution: "merge-duplicates" }],
    ["resolution=ignore-duplicates", { resolution: "ignore-duplicates" }],
    ["missing=default", { missing: "default" }],
    ["missing=null", { missing: "null" }],
    ["handling=lenient", { handling: "lenient" }],
    ["handling=strict", { handling: "strict" }],
    ["tx=commit", { tx: "commit" }],
    [`max-affected=${"9".repeat(310)}`, { maxAffected: Number.MAX_SAFE_INTEGER }],
    ["tx=rollback", { tx: "rollback" }],
    ["timezone=America/Los_Angeles", { timezone: "America/Los_Angeles" }],
    ["operators", { operators: true }],
    ["etag", { etag: true }],
    ["etag=1", {}],
    ["operators=", { operators: true }],
    ["operators=yes", {}],
    ["max-affected=10", { maxAffected: 10 }],
    ["max-affected=many", {}],
    ["count=exact,    tx=commit   ,return=representation ", { count: "exact", tx: "commit", return: "representation" }],
    ["tx=commit, tx=rollback", { tx: "commit" }],
    ["anything, count=none, constructor=x, count=exact", { count: "exact" }],
    ["handling=lenient, anything", { handling: "lenient" }],
  ])("%s", (header, preferences) => {
    expect(parse(header)).toEqual({ ...NONE, ...preferences });
  });

  test("a time zone is found without regard to case, and is otherwise refused", () => {
    expect(parse("timezone=america/los_angeles").timezone).toBe("america/los_angeles");
    for (const header of ["timezone=Nowhere", "handling=strict, timezone=Nowhere"]) {
      expect(parseErrorOf(() => parse(header))).toMatchObject({ status: 400, code: "22023" });
    }
    const without = { txOverride: true, timeZones: new Set<string>() };
    expect(parsePreferences("timezone=Nowhere", without).timezone).toBeNull();
  });

  test("tx is accepted only if the deployment allows it", () => {
    const deaf = { txOverride: false, timeZones };
    expect(parsePreferences("tx=rollback, handling=strict", deaf)).toEqual({ ...NONE, handling: "strict" });
  });

  test.each([
    ["handling=strict, anything", "anything"],
    ["something, handling=strict,else", "something, else"],
    ["handling=strict, count=none, return=all", "count=none, return=all"],
    ["handling=strict, toString=x", "toString=x"],
  ])("%s is refused with its invalid preferences", (header, invalid) => {
    expect(parseErrorOf(() => parse(header))).toEqual({
      status: 400,
      code: "PGRST122",
      message: "Invalid preferences given with handling=strict",
      details: `Invalid preferences: ${invalid}`,
      hint: null,
    });
  });
});
