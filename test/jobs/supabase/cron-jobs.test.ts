import { expect, test } from "vitest";
import { findDueTime } from "../../../jobs/supabase/cron-jobs.ts";

const at = (time: string) => new Date(`2026-02-28T${time}Z`);

test("a job is due at the last of its times since the one before, in UTC", () => {
  expect(findDueTime("*/5 * * * *", at("10:00:30"), at("10:04:59"))).toBeNull();
  expect(findDueTime("*/5 * * * *", at("10:00:30"), at("10:05:00"))).toEqual(at("10:05:00"));
  expect(findDueTime(" 0  12 * * * ", at("11:59:59"), at("12:00:01"))).toEqual(at("12:00:00"));
  expect(findDueTime("0 12 * * * *", at("11:59:59"), at("12:00:01"))).toEqual(at("12:00:00"));
  expect(findDueTime("@midnight", new Date("2026-02-27T23:59:00Z"), at("00:00:01"))).toEqual(at("00:00:00"));
});

test("a job is never due before its time, however many were missed", () => {
  expect(findDueTime("*/5 * * * *", at("10:00:30"), at("10:14:31"))).toEqual(at("10:10:00"));
  expect(findDueTime("0 * * * *", at("01:30:00"), at("08:59:20"))).toEqual(at("08:00:00"));
  expect(findDueTime("0 * * * *", at("01:30:00"), at("09:00:00"))).toEqual(at("09:00:00"));
});

test("a schedule of seconds is due at each multiple of them", () => {
  expect(findDueTime("30 seconds", at("10:00:29"), at("10:00:31"))).toEqual(at("10:00:30"));
  expect(findDueTime("30 seconds", at("10:00:30"), at("10:00:59"))).toBeNull();
  expect(findDueTime("1 second", at("10:00:00"), at("10:00:05"))).toEqual(at("10:00:05"));
});

test("$ is the last day of a month, and what cannot be read is never due", () => {
  expect(findDueTime("0 12 $ * *", at("11:59:00"), at("12:00:00"))).toEqual(at("12:00:00"));
  expect(findDueTime("0 12 $ * *", new Date("2026-02-27T11:59:00Z"), new Date("2026-02-27T12:00:00Z"))).toBeNull();
  expect(findDueTime("never", at("11:59:00"), at("12:00:00"))).toBeNull();
});
