import fc from "fast-check";
import { expect, test } from "vitest";
import { findDueTimes, MAX_DUE_TIMES } from "../../../jobs/cron/cron-times.ts";
import { propertyRuns } from "../../property-runs.ts";
import { referenceTimes } from "./reference-cron.ts";

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** Zones, and a day on which their clocks change. */
const CLOCK_CHANGES: readonly (readonly [timeZone: string, day: string])[] = [
  ["UTC", "2026-02-28"],
  ["Asia/Kolkata", "2028-02-29"],
  ["Europe/Berlin", "2026-03-29"],
  ["Europe/Berlin", "2026-10-25"],
  ["America/New_York", "2026-03-08"],
  ["America/New_York", "2026-11-01"],
  // The clock moves by half an hour
  ["Australia/Lord_Howe", "2026-04-04"],
  ["Australia/Lord_Howe", "2026-10-03"],
  // The clock moves at midnight
  ["America/Sao_Paulo", "2018-11-04"],
  ["America/Sao_Paulo", "2018-02-17"],
  ["Africa/Cairo", "2026-04-23"],
  ["Africa/Cairo", "2026-10-29"],
  // The clock moves at one minute past midnight
  ["America/St_Johns", "2010-03-14"],
  ["America/St_Johns", "2010-11-07"],
];

type Field = { readonly low: number; readonly high: number; readonly names?: readonly string[] };
const FIELDS: readonly Field[] = [
  { low: 0, high: 59 },
  { low: 0, high: 23 },
  { low: 1, high: 31 },
  { low: 1, high: 12, names: ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"] },
  { low: 0, high: 7, names: ["sun", "mon", "tue", "wed", "thu", "fri", "sat"] },
];

function fieldTexts({ low, high, names }: Field): fc.Arbitrary<string> {
  const number = fc.integer({ min: low, max: high });
  const step = fc.integer({ min: 1, max: names?.length ?? high - low + 1 });
  const range = fc.tuple(number, number).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const);
  const written = (value: number) => names?.[value - low] ?? String(value);
  const item = fc.oneof(
    number.map(String),
    number.map(written),
    range.map(([from, to]) => `${from}-${to}`),
    fc.tuple(range, step).map(([[from, to], by]) => `${from}-${written(to)}/${by}`),
    step.map((by) => `*/${by}`),
  );
  return fc.oneof(
    { weight: 3, arbitrary: fc.constant("*") },
    item,
    fc.array(item, { minLength: 2, maxLength: 3 }).map(String),
  );
}

const [minutes, hours, days, months, weekdays] = FIELDS.map(fieldTexts) as [
  fc.Arbitrary<string>,
  fc.Arbitrary<string>,
  fc.Arbitrary<string>,
  fc.Arbitrary<string>,
  fc.Arbitrary<string>,
];
/** Hours that are mostly early, in which clocks change. */
const nightHours = fc.oneof(
  fc.integer({ min: 0, max: 4 }).map(String),
  fc.constantFrom("1-3", "0,2", "2,3", "*", "*/2", "23"),
  hours,
);
const cronTexts = fc
  .tuple(
    minutes,
    nightHours,
    fc.oneof(fc.constant("*"), days),
    fc.oneof(fc.constant("*"), months),
    fc.oneof(fc.constant("*"), weekdays),
  )
  .map((fields) => fields.join(" "));

/** Returns all times after one and up to another, asked for in steps as the service does. */
function allTimes(text: { cron: string; timeZone: string }, after: Date, until: Date, stepMinutes: number): Date[] {
  const found: Date[] = [];
  for (let from = after; from < until; ) {
    const to = new Date(Math.min(from.getTime() + stepMinutes * MINUTE_MS, until.getTime()));
    const { due, next } = findDueTimes(text, from, to);
    found.push(...due);
    expect(next === null || next > to).toBe(true);
    from = to;
  }
  return found;
}

test("cron texts match the same minutes as a comparison of each minute with the local time, across changes of the clock", () => {
  fc.assert(
    fc.property(
      cronTexts,
      fc.constantFrom(...CLOCK_CHANGES),
      fc.integer({ min: 15, max: MAX_DUE_TIMES }),
      (cron, [timeZone, day], step) => {
        const after = new Date(Date.parse(`${day}T00:00:00Z`) - DAY_MS / 2);
        const until = new Date(after.getTime() + 2 * DAY_MS);
        const times = allTimes({ cron, timeZone }, after, until, step);
        expect(times.map((time) => time.toISOString())).toEqual(
          referenceTimes({ cron, timeZone }, after, until).map((time) => time.toISOString()),
        );
      },
    ),
    { numRuns: propertyRuns(400), examples: [["* 0 * * 0-sun/1", ["UTC", "2026-02-28"], 15]] },
  );
});

test("a time that daylight saving skips is the first minute after the gap, and one that it repeats counts once", () => {
  const inBerlin = (cron: string, day: string) => {
    const after = new Date(`${day}T00:00:00Z`);
    const { due } = findDueTimes(
      { cron, timeZone: "Europe/Berlin" },
      new Date(after.getTime() - 3_600_000),
      new Date(after.getTime() + 3 * 3_600_000),
    );
    return due.map((time) => time.toISOString().slice(11, 16));
  };
  expect(inBerlin("30 2 * * *", "2026-03-29")).toEqual(["01:00"]);
  expect(inBerlin("0,30 2 * * *", "2026-03-29")).toEqual(["01:00"]);
  expect(inBerlin("*/30 2 * * *", "2026-03-29")).toEqual([]);
  expect(inBerlin("30 2 * * *", "2026-10-25")).toEqual(["00:30"]);
  expect(inBerlin("30 * * * *", "2026-10-25")).toEqual(["23:30", "00:30", "01:30", "02:30"]);
});

test("of a long period the last hundred times are returned, the oldest first", () => {
  const until = new Date("2026-06-01T12:00:00Z");
  const { due, next } = findDueTimes({ cron: "* * * * *", timeZone: "UTC" }, new Date("2020-01-01T00:00:00Z"), until);
  expect(due).toHaveLength(MAX_DUE_TIMES);
  expect(due.at(-1)).toEqual(until);
  expect(due[0]).toEqual(new Date(until.getTime() - (MAX_DUE_TIMES - 1) * MINUTE_MS));
  expect(next).toEqual(new Date(until.getTime() + MINUTE_MS));
});

test("abbreviations name the times of five fields", () => {
  const after = new Date("2026-12-31T22:59:00Z");
  const first = (cron: string) =>
    findDueTimes({ cron, timeZone: "UTC" }, after, after).next?.toISOString().slice(0, 16);
  expect(first("@hourly")).toBe("2026-12-31T23:00");
  expect(first("@daily")).toBe("2027-01-01T00:00");
  expect(first("@weekly")).toBe("2027-01-03T00:00");
  expect(first("@monthly")).toBe("2027-01-01T00:00");
  expect(first("@yearly")).toBe("2027-01-01T00:00");
});
