import { describe, expect, test } from "vitest";
import { parseAccept } from "../../../../rest-gateway/table/parse/accept.ts";
import {
  type MediaType,
  nameOf,
  parseContentType,
  parseMediaType,
} from "../../../../rest-gateway/table/parse/media-type.ts";

const named = (name: string): MediaType => ({ kind: "named", name });
const json = named("application/json");

describe("media types", () => {
  test.each<[string, MediaType]>([
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
    ["application/vnd.pgrst.object", { kind: "object", nulls: "kept" }],
    ["ApplicatIon/vnd.PgRsT.object+json", { kind: "object", nulls: "kept" }],
    ["application/vnd.pgrst.object+json;nulls=stripped", { kind: "object", nulls: "stripped" }],
    ["application/vnd.pgrst.object; NULLS=stripped", { kind: "object", nulls: "stripped" }],
    ["application/vnd.pgrst.object+json;nulls=kept", { kind: "object", nulls: "kept" }],
    ["application/vnd.pgrst.array+json;nulls=stripped", { kind: "array", nulls: "stripped" }],
    ["application/vnd.pgrst.array+json", json],
    ["application/vnd.pgrst.plan", { kind: "plan", for: json, format: "text", options: [] }],
    ["application/vnd.pgrst.plan;", { kind: "plan", for: json, format: "text", options: [] }],
    ["application/vnd.pgrst.plan+text", { kind: "plan", for: json, format: "text", options: [] }],
    [
      'application/vnd.pgrst.plan+json;for="text/csv"',
      { kind: "plan", for: named("text/csv"), format: "json", options: [] },
    ],
    [
      'application/vnd.pgrst.plan ; for="text/xml" ; options=analyze',
      { kind: "plan", for: named("text/xml"), format: "text", options: ["analyze"] },
    ],
    [
      "application/vnd.pgrst.plan; options=wal|analyze|verbose|settings|buffers|nonsense",
      { kind: "plan", for: json, format: "text", options: ["analyze", "verbose", "settings", "buffers", "wal"] },
    ],
    [
      'application/vnd.pgrst.plan; for="application/vnd.pgrst.object+json;nulls=stripped"',
      { kind: "plan", for: { kind: "object", nulls: "stripped" }, format: "text", options: [] },
    ],
  ])("%s is read", (text, type) => {
    expect(parseMediaType(text)).toEqual(type);
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
    expect(nameOf(parseMediaType(text))).toBe(name);
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
  ])("%s is answered best by", (header, names) => {
    expect(parseAccept(header).map(nameOf)).toEqual(names);
  });
});
