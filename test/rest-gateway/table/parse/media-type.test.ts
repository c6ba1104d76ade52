import { describe, expect, test } from "vitest";
import type { ExplainOption, ResponseFormat } from "../../../../planner/intent/intent.ts";
import { parseAccept, parseContentType, parseMediaType } from "../../../../rest-gateway/table/parse/headers.ts";

const named = (type: string): ResponseFormat => ({ kind: "media", type });
const json = named("application/json");
const object = (nulls: "kept" | "stripped"): ResponseFormat => ({
  kind: "object",
  type: `application/vnd.pgrst.object+json${nulls === "stripped" ? ";nulls=stripped" : ""}`,
  nulls,
});
const plan = (of: ResponseFormat, as: "text" | "json", ...options: ExplainOption[]) => ({
  kind: "plan",
  of,
  as,
  options,
});

describe("media types", () => {
  test.each<[string, object]>([
    ["application/json", json],
    ["application/json; charset=utf-8", json],
    ["Application/JSON", json],
    ["text/csv; version=1", named("text/csv")],
    ["application/geo+json", named("application/geo+json")],
    ["application/openapi+json", named("application/openapi+json")],
    ["application/octet-stream", named("application/octet-stream")],
    ["application/x-www-form-urlencoded", named("application/x-www-form-urlencoded")],
    ["text/plain", named("text/plain")],
    ["text/xml", named("text/xml")],
    ["*/*", named("*/*")],
    ["image/png", named("image/png")],
    ["application/vnd.twkb", named("application/vnd.twkb")],
    ["nonsense", named("nonsense")],
    ["", named("")],
    ["application/vnd.pgrst.object", object("kept")],
    ["ApplicatIon/vnd.PgRsT.object+json", object("kept")],
    ["application/vnd.pgrst.object+json;nulls=stripped", object("stripped")],
    ["application/vnd.pgrst.object; NULLS=stripped", object("stripped")],
    ["application/vnd.pgrst.object+json;nulls=kept", object("kept")],
    ["application/vnd.pgrst.array+json;nulls=stripped", { kind: "array", nulls: "stripped" }],
    ["application/vnd.pgrst.array+json", json],
    ["application/vnd.pgrst.plan", plan(json, "text")],
    ["application/vnd.pgrst.plan;", plan(json, "text")],
    ["application/vnd.pgrst.plan+text", plan(json, "text")],
    ['application/vnd.pgrst.plan+json;for="text/csv"', plan(named("text/csv"), "json")],
    ['application/vnd.pgrst.plan ; for="text/xml" ; options=analyze', plan(named("text/xml"), "text", "analyze")],
    [
      "application/vnd.pgrst.plan; options=wal|analyze|verbose|settings|buffers|nonsense",
      plan(json, "text", "analyze", "verbose", "settings", "buffers", "wal"),
    ],
    [
      'application/vnd.pgrst.plan; for="application/vnd.pgrst.object+json;nulls=stripped"',
      plan(object("stripped"), "text"),
    ],
  ])("%s is parsed", (text, type) => {
    expect(parseMediaType(text)).toMatchObject(type);
  });

  test.each([
    ["application/json; charset=utf-8", "application/json"],
    ["image/png;a=b", "image/png;a=b"],
    ["application/vnd.pgrst.object", "application/vnd.pgrst.object+json"],
    ["application/vnd.pgrst.object; nulls=stripped", "application/vnd.pgrst.object+json;nulls=stripped"],
    ["application/vnd.pgrst.array;nulls=stripped", "application/vnd.pgrst.array+json;nulls=stripped"],
    ["application/vnd.pgrst.plan", 'application/vnd.pgrst.plan+text; for="application/json"'],
    [
      'application/vnd.pgrst.plan+json; for="text/csv"; options=wal|analyze',
      'application/vnd.pgrst.plan+json; for="text/csv"; options=analyze|wal',
    ],
  ])("%s is named %s", (text, name) => {
    expect(parseMediaType(text).type).toBe(name);
  });

  test("a body without a type is JSON", () => {
    expect(parseContentType(undefined)).toEqual(json);
    expect(parseContentType("text/csv")).toEqual(named("text/csv"));
  });
});

describe("Accept", () => {
  test.each([
    [undefined, ["*/*"]],
    ["*/*", ["*/*"]],
    ["text/csv", ["text/csv"]],
    ["text/csv;q=0.5", ["text/csv"]],
    ["text/csv, application/json", ["text/csv", "application/json"]],
    ["application/json;q=0.5,text/csv;q=0.9", ["text/csv", "application/json"]],
    ["*/*, text/csv", ["text/csv", "*/*"]],
    ["text/html,application/xml;q=0.9,image/webp,*/*;q=0.8", ["text/html", "image/webp", "application/xml", "*/*"]],
    ["text/csv;q=nonsense, application/json;q=0.9", ["text/csv", "application/json"]],
    ["text/foo, image/png;q=0.2;x=1", ["text/foo", "image/png"]],
    [
      "application/json, application/vnd.pgrst.object;nulls=stripped",
      ["application/vnd.pgrst.object+json;nulls=stripped", "application/json"],
    ],
    [
      'application/vnd.pgrst.plan+json; for="application/json"; options=analyze|',
      ['application/vnd.pgrst.plan+json; for="application/json"; options=analyze'],
    ],
  ])("%s selects the best media type", (header, names) => {
    expect(parseAccept(header).map(({ type }) => type)).toEqual(names);
  });
});
