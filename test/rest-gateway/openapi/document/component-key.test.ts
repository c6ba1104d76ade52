import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { componentKey } from "../../../../rest-gateway/openapi/document/components.ts";

describe("the key of a component", () => {
  test.each([
    ["films", "films"],
    ["Films_2", "Films_2"],
    ["odd table", "odd-20-table"],
    ["a-b", "a-2d-b"],
    ["a.b", "a-2e-b"],
    ["größe😀", "gr-f6--df-e-1f600-"],
  ])("%s is %s", (name, key) => {
    expect(componentKey(name)).toBe(key);
  });

  test("is valid in OpenAPI, without a dot, and unique for each name", () => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, unit: "binary" }), fc.string({ minLength: 1, unit: "binary" }), (a, b) => {
        expect(componentKey(a)).toMatch(/^[\w-]+$/);
        if (a !== b) expect(componentKey(a)).not.toBe(componentKey(b));
      }),
    );
  });
});
