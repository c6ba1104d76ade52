import { describe, expect, test } from "vitest";
import { editDistance } from "../../runtime/edit-distance.ts";

describe("editDistance", () => {
  test.each([
    ["", "", 0],
    ["", "abc", 3],
    ["port", "port", 0],
    ["port", "pot", 1],
    ["port", "sport", 1],
    ["port", "part", 1],
    ["kitten", "sitting", 3],
  ])("%j and %j differ in %i letters, in either order", (left, right, distance) => {
    for (const swaps of [true, false]) {
      expect(editDistance(left, right, { swaps })).toBe(distance);
      expect(editDistance(right, left, { swaps })).toBe(distance);
    }
  });

  test("transposed neighbours are one edit if requested", () => {
    expect(editDistance("prot", "port", { swaps: true })).toBe(1);
    expect(editDistance("prot", "port", { swaps: false })).toBe(2);
  });
});
