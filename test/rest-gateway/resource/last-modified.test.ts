import { describe, expect, test } from "vitest";
import type { Collection } from "../../../rest-gateway/resource/collections/collections.ts";
import { isUnmodified, lastModified } from "../../../rest-gateway/resource/conditional-requests.ts";

const field = (name: string, column: string) => ({
  name,
  readable: true,
  column: { name: column, baseType: { name: "timestamptz" } },
});
const collectionOf = (...fields: ReturnType<typeof field>[]) => ({ fields }) as unknown as Collection;
const TIMES = collectionOf(field("created_at", "created_at"), field("updatedAt", "updated_at"));

const dated = (created_at: string, updatedAt: string | null, now: string) =>
  lastModified(JSON.stringify({ created_at, updatedAt }), TIMES, Date.parse(now))?.toISOString() ?? null;

describe("the Last-Modified date of a row", () => {
  test("is immediate while it is unchanged since its creation", () => {
    expect(dated("2026-01-01T00:00:00.9Z", "2026-01-01T00:00:00.9Z", "2026-01-01T00:00:01Z")).toBe(
      "2026-01-01T00:00:00.000Z",
    );
    expect(dated("2026-01-01T00:00:00.9Z", null, "2026-01-01T00:00:01Z")).toBe("2026-01-01T00:00:00.000Z");
  });

  test("is that of its last change after some seconds", () => {
    const [made, changed] = ["2026-01-01T00:00:00Z", "2026-01-01T00:00:07.5Z"];
    expect(dated(made, changed, "2026-01-01T00:00:08Z")).toBeNull();
    expect(dated(made, changed, "2026-01-01T00:00:10Z")).toBe("2026-01-01T00:00:07.000Z");
  });

  test("is never that of a change in the second of its creation", () => {
    expect(dated("2026-01-01T00:00:00.100000Z", "2026-01-01T00:00:00.100001Z", "2027-01-01T00:00:00Z")).toBeNull();
  });

  test("is never that of a change before its creation: a transaction that began earlier made it", () => {
    expect(dated("2026-01-01T00:00:09Z", "2026-01-01T00:00:02Z", "2027-01-01T00:00:00Z")).toBeNull();
  });

  test("is that of its own times, whatever its texts and nested objects contain", () => {
    const times = { created_at: "2026-01-01T00:00:00Z", updatedAt: "2026-01-01T00:00:00Z" };
    const others = { created_at: "2020-01-01T00:00:00Z", updatedAt: "2021-01-01T00:00:00Z" };
    const text = JSON.stringify(others);
    const dateOf = (row: object) => lastModified(JSON.stringify(row), TIMES, Date.now())?.toISOString();
    expect(dateOf({ text: '"created_at":"', ...times })).toBe("2026-01-01T00:00:00.000Z");
    expect(dateOf({ text, list: ['","created_at":"'], ...times, author: null })).toBe("2026-01-01T00:00:00.000Z");
    expect(dateOf({ 'x"created_at': "2020-01-01T00:00:00Z", ...times })).toBe("2026-01-01T00:00:00.000Z");
    expect(dateOf({ author: others, ...times })).toBe("2026-01-01T00:00:00.000Z");
    expect(
      lastModified(`{ "created_at" : "${times.created_at}", "updatedAt" : null }`, TIMES, Date.now()),
    ).not.toBeNull();
  });

  test("is absent if its times are not selected", () => {
    expect(lastModified(`{"name":"x"}`, TIMES, Date.now())).toBeNull();
    expect(lastModified(`{"created_at":"2026-01-01T00:00:00Z"}`, collectionOf(), Date.now())).toBeNull();
  });
});

test("matches any later date, and an invalid date is ignored", () => {
  const modified = new Date("2026-01-01T00:00:00Z");
  expect(isUnmodified("Thu, 01 Jan 2026 00:00:00 GMT", modified)).toBe(true);
  expect(isUnmodified("Wed, 31 Dec 2025 23:59:59 GMT", modified)).toBe(false);
  expect(isUnmodified("yesterday", modified)).toBe(false);
  expect(isUnmodified(undefined, modified)).toBe(false);
  expect(isUnmodified("Thu, 01 Jan 2026 00:00:00 GMT", null)).toBe(false);
});
