import { describe, expect, test } from "vitest";
import { parseExpiryDate } from "../../accounts/api-keys.ts";

describe("a moment", () => {
  test.each([
    ["2027-12-31", "2027-12-31T00:00:00.000Z"],
    ["2027-12-31T10:30:00Z", "2027-12-31T10:30:00.000Z"],
    ["2027-12-31T23:30:00-02:00", "2028-01-01T01:30:00.000Z"],
    ["2028-02-29", "2028-02-29T00:00:00.000Z"],
  ])("is read from %s", (text, moment) => expect(parseExpiryDate(text)?.toISOString()).toBe(moment));

  test.each([
    "2027-02-30",
    "2027-02-29T10:00:00Z",
    "2027-13-01",
    "2027-12-31x",
    "2027-12-31T25:00",
    "tomorrow",
    "1",
    "",
  ])("is not read from %j", (text) => expect(parseExpiryDate(text)).toBeNull());
});
