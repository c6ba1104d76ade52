import { expect, test } from "vitest";
import { parseRecoveryTarget } from "../../../cluster/wal-archive/recovery-time.ts";

const read = (text: string) => {
  const target = parseRecoveryTarget(text);
  return target === "latest" ? target : target.at.toISOString();
};

test("a time is read with an offset, a zone's name, or as the time of this machine", () => {
  expect(read("2026-11-22T10:15:30.5Z")).toBe("2026-11-22T10:15:30.500Z");
  expect(read("2026-11-22 10:15 UTC")).toBe("2026-11-22T10:15:00.000Z");
  expect(read("2026-11-22 10:15+01:00")).toBe("2026-11-22T09:15:00.000Z");
  expect(read("2026-11-22 10:15:30-0530")).toBe("2026-11-22T15:45:30.000Z");
  expect(read("2026-11-22 10:15 Europe/Berlin")).toBe("2026-11-22T09:15:00.000Z");
  expect(read("2026-07-22 10:15 Europe/Berlin")).toBe("2026-07-22T08:15:00.000Z");
  expect(read("2026-11-22 10:15")).toBe(new Date(2026, 10, 22, 10, 15).toISOString());
  expect(read("2026-11-22")).toBe(new Date(2026, 10, 22).toISOString());
  expect(read(" latest ")).toBe("latest");
});

test("the hours around a change of summer time are read", () => {
  expect(read("2026-03-29 01:59 Europe/Berlin")).toBe("2026-03-29T00:59:00.000Z");
  expect(read("2026-03-29 03:00 Europe/Berlin")).toBe("2026-03-29T01:00:00.000Z");
  expect(read("2026-10-25 03:00 Europe/Berlin")).toBe("2026-10-25T02:00:00.000Z");
});

test("a time can be given by its distance from now", () => {
  const now = new Date("2026-11-22T10:15:00Z");
  const at = (text: string) => parseRecoveryTarget(text, now);
  expect(at("10 minutes ago")).toEqual({ at: new Date("2026-11-22T10:05:00Z") });
  expect(at("1 hour ago")).toEqual({ at: new Date("2026-11-22T09:15:00Z") });
  expect(at("90 Seconds ago")).toEqual({ at: new Date("2026-11-22T10:13:30Z") });
  expect(at("2 days ago")).toEqual({ at: new Date("2026-11-20T10:15:00Z") });
  expect(() => at("ago")).toThrow("Specify a time such as");
});

test("what is no time is refused with a message", () => {
  expect(() => read("yesterday")).toThrow("Specify a time such as");
  expect(() => read("2026-02-30 10:15")).toThrow("There is no such date or time: 2026-02-30 10:15:00.");
  expect(() => read("2026-11-22 25:00")).toThrow("There is no such date or time");
  expect(() => read("2026-11-22 10:15 Mars/Olympus")).toThrow('There is no time zone "Mars/Olympus"');
});
