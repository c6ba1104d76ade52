import { expect, test } from "vitest";
import { deprecationReasonOf, deprecationReasonOfPart } from "../../plugins/graphql-types.ts";

test.each([
  [undefined, undefined],
  [null, undefined],
  [true, "No longer supported"],
  ["Use that.", "Use that."],
  [["Use that,", "or this."], "Use that,\nor this."],
] as const)("@deprecated %j gives the reason %j", (tag, reason) => {
  expect(deprecationReasonOf(tag)).toBe(reason);
});

test.each([
  ["OLD Use NEW.", "Use NEW."],
  [["OTHER Gone.", "OLD Use NEW."], "Use NEW."],
  ["OLD", "No longer supported"],
  ["OLDER Use NEW.", undefined],
  [true, undefined],
  [undefined, undefined],
] as const)("@deprecatedValue %j gives the reason for OLD: %j", (tag, reason) => {
  expect(deprecationReasonOfPart(tag, "OLD")).toBe(reason);
});
