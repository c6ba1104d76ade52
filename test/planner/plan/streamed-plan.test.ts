import { describe, expect, test } from "vitest";
import type { Intent, ResponseFormat } from "../../../planner/intent/intent.ts";
import { MAX_BUFFERED_ROWS, toProbePlan, toStreamedPlan } from "../../../planner/plan/plan.ts";
import { type FixtureOptions, JSON_FORMAT } from "../fixture-database.ts";
import { call, column, everyColumn, insert, post, read } from "../intents.ts";
import { catalog, planIntent } from "../planner.ts";

const longPlanOf = (intent: Intent, options?: FixtureOptions) => toStreamedPlan(planIntent(intent, options));
const as = (format: ResponseFormat): FixtureOptions => ({ formats: [format] });
const CSV: ResponseFormat = { kind: "media", type: "text/csv" };
const EXPLAINED: ResponseFormat = { kind: "plan", type: "x/plan", of: JSON_FORMAT, as: "text", options: [] };
const OBJECT: ResponseFormat = { kind: "object", type: "x/object", nulls: "kept" };

describe("a response that can be streamed", () => {
  test.each<[string, Intent, FixtureOptions]>([
    ["rows as JSON", read("works"), {}],
    ["less what is null", read("works"), as({ kind: "array", type: "x/array", nulls: "stripped" })],
    ["rows as CSV", read("works"), as(CSV)],
    ["a page of them", read("works", { window: { offset: 3, limit: 4 } }), {}],
    ["what a function gives", call("all_works"), {}],
    ["what a function that changes nothing gives, by whatever method", post("all_works", {}), {}],
  ])("%s", (_name, intent, options) => {
    expect(longPlanOf(intent, options)).not.toBeNull();
  });

  test("has known column names before Postgres sends them", () => {
    const { rows } = longPlanOf(
      read("artists", { select: [everyColumn(), column("id", { alias: "again" })] }),
      as(CSV),
    )!;
    const names = [...catalog.findTable({ schema: "api", name: "artists" })!.columns.keys()];
    expect(rows.outputs.map((output) => output.kind === "value" && output.name)).toEqual([...names, "again"]);
  });

  test("counts its rows before they are sent", () => {
    expect(longPlanOf(read("works", {}, { count: "exact" }))!.total).toEqual({ kind: "counted", max: null });
    expect(longPlanOf(read("works"))!.total).toEqual({ kind: "none" });
  });
});

describe("a response that cannot be streamed", () => {
  test.each<[string, Intent, FixtureOptions]>([
    ["nothing but a head", read("works"), { includesBody: false }],
    ["one row", read("works"), as(OBJECT)],
    ["an explanation", read("works"), as(EXPLAINED)],
    ["what was written", insert("works", [{ title: "x" }]), {}],
    [
      "a page that begins behind a row",
      read("works", { window: { offset: 0, limit: 5 } }, { page: { kind: "first" } }),
      {},
    ],
    ["a value", call("greet"), {}],
    ["values", call("words"), {}],
    ["what a function gives, counted", call("all_works", {}, {}, { count: "exact" }), {}],
    ["what a function gives, of which there may be too much", call("all_works"), { maxAffected: 3 }],
    ["what a function gives, as CSV", call("all_works"), as(CSV)],
  ])("%s", (_name, intent, options) => {
    expect(longPlanOf(intent, options)).toBeNull();
  });

  test("the result of a volatile function", () => {
    expect(longPlanOf(post("volatile_works", {}))).toBeNull();
    expect(longPlanOf(call("volatile_works"))).not.toBeNull();
  });
});

describe("a probe", () => {
  test("detects too many rows, and is the plan itself if there cannot be too many", () => {
    const all = planIntent(read("works"));
    expect(toProbePlan(all).rows).toEqual({ ...all.rows, limit: MAX_BUFFERED_ROWS + 1 });
    const many = planIntent(read("works", { window: { offset: 2, limit: 9 * MAX_BUFFERED_ROWS } }));
    expect(toProbePlan(many).rows).toMatchObject({ offset: 2, limit: MAX_BUFFERED_ROWS + 1 });
    const few = planIntent(read("works", { window: { offset: 2, limit: MAX_BUFFERED_ROWS } }));
    expect(toProbePlan(few)).toBe(few);
  });
});
