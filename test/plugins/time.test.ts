import { describe, expect, test } from "vitest";
import { readTime, toTime } from "../../plugins/time.ts";

describe("a time", () => {
  test.each([
    ["2026-11-20T10:15:00+00:00", "2026-11-20T10:15:00.000Z"],
    ["2026-11-20T10:15:00.5+00:00", "2026-11-20T10:15:00.500Z"],
    ["2026-11-20T10:15:00.123456+00:00", "2026-11-20T10:15:00.123456Z"],
    ["2026-11-20T10:15:00.123456+05:30", "2026-11-20T04:45:00.123456Z"],
    ["2026-01-01T00:15:00-08:00", "2026-01-01T08:15:00.000Z"],
    ["infinity", "infinity"],
    ["-infinity", "-infinity"],
    ["0044-03-15T12:00:00+00:00 BC", "0044-03-15T12:00:00+00:00 BC"],
  ])("that JSON in Postgres writes as %s is told as %s", (text, time) => {
    expect(toTime(text)).toBe(time);
  });

  test.each([
    ["2026-11-20T10:15:00Z", "2026-11-20T10:15:00Z"],
    ["2026-11-20T10:15:00.123456Z", "2026-11-20T10:15:00.123456Z"],
    ["2026-11-20T10:15:00+05:30", "2026-11-20T10:15:00+05:30"],
    ["2026-11-20 10:15", "2026-11-20T10:15Z"],
    ["2026-11-20", "2026-11-20T00:00Z"],
  ])("may be sent as %s", (text, read) => {
    expect(readTime(text)).toBe(read);
  });

  test.each(["", "yesterday", "now", "10:15", "1763633700", "20.11.2026", "2026-11-20T10:15:00 Europe/Berlin"])(
    "may not be sent as %j, though Postgres might make something of it",
    (text) => {
      expect(readTime(text)).toBeNull();
    },
  );
});
