import { describe, expect, test } from "vitest";
import type { CallIntent } from "../../../planner/intent/intent.ts";
import { findRoutine } from "../../../planner/plan/find-target.ts";
import type { ApiError } from "../../../runtime/errors.ts";
import { call, post } from "../intents.ts";
import { catalog } from "../planner.ts";

const find = (intent: CallIntent, role = "anon") => findRoutine(intent, catalog, role);
const parameters = (intent: CallIntent) => find(intent).arguments.map(({ name, type }) => `${name} ${type.sqlName}`);
const raw = (name: string, type: "text" | "xml" | "bytea"): CallIntent => ({
  ...call(name),
  argument: { kind: "raw", type, body: Buffer.from("x") },
});

function refusal(intent: CallIntent, role?: string): ApiError {
  try {
    find(intent, role);
  } catch (error) {
    return error as ApiError;
  }
  throw new Error(`${intent.target.name} is there`);
}

describe("a function is found by the names of its arguments", () => {
  test.each<[CallIntent, string[]]>([
    [call("greet"), []],
    [call("greet", { name: "a" }), ["name text"]],
    [call("greet", { times: "1", name: "a" }), ["name text", "times integer"]],
    [call("required", { a: "1" }), ["a integer", "b integer"]],
    [call("required", { a: "1", b: "2" }), ["a integer", "b integer"]],
    [call("defaults"), ["a integer", "b text", "c boolean"]],
    [call("defaults", { c: "true" }), ["a integer", "b text", "c boolean"]],
    [post("either", { doc: "x" }), ["doc text"]],
    [post("either", { other: "x" }), ["null json"]],
    [post("either", [1]), ["null json"]],
    [post("echo_jsonb", { a: 1 }), ["null jsonb"]],
    [post("echo_text", { "": "x" }), ["null text"]],
    [post("echo_json", { "": "x" }), ["null json"]],
    [raw("echo_text", "text"), ["null text"]],
    [raw("echo_xml", "xml"), ["null xml"]],
    [raw("echo_bytes", "bytea"), ["null bytea"]],
  ])("%j", (intent, expected) => {
    expect(parameters(intent)).toEqual(expected);
  });
});

describe("a function is refused", () => {
  test("with PostgREST's message, with the nearest name", () => {
    expect(refusal(call("add_", { b: "1", a: "2" }))).toMatchObject({
      kind: "notFound",
      code: "PGRST202",
      message: "Could not find the function api.add_(a, b) in the schema cache",
      details:
        "Searched for the function api.add_ with parameters a, b, but no matches were found in the schema cache.",
      hint: "Perhaps you meant to call the function api.add",
    });
  });

  test("with the nearest parameters", () => {
    expect(refusal(call("greet", { nam: "x" })).hint).toBe("Perhaps you meant to call the function api.greet(name)");
    expect(refusal(call("add", { a: "1" }))).toMatchObject({
      message: "Could not find the function api.add(a) in the schema cache",
      details: "Searched for the function api.add with parameter a, but no matches were found in the schema cache.",
      hint: "Perhaps you meant to call the function api.add(a, b)",
    });
  });

  test("without parameters", () => {
    expect(refusal(call("nothing_like_it"))).toMatchObject({
      message: "Could not find the function api.nothing_like_it without parameters in the schema cache",
      details:
        "Searched for the function api.nothing_like_it without parameters, but no matches were found in the schema cache.",
      hint: null,
    });
  });

  test("for a body of JSON", () => {
    expect(refusal(post("add", { x: 1 })).details).toBe(
      "Searched for the function api.add with parameter x or with a single unnamed json/jsonb parameter, but no matches were found in the schema cache.",
    );
  });

  test.each(["text", "xml", "bytea"] as const)("for a body of %s", (type) => {
    expect(refusal(raw("add", type))).toMatchObject({
      message: "Could not find the function api.add in the schema cache",
      details: `Searched for the function api.add with a single unnamed ${type} parameter, but no matches were found in the schema cache.`,
      hint: null,
    });
  });

  test("if it is ambiguous", () => {
    expect(refusal(call("clash", { a: "1" }))).toMatchObject({
      kind: "ambiguous",
      code: "PGRST203",
      message: "Could not choose the best candidate function between: api.clash(a => integer), api.clash(a => text)",
    });
  });

  test.each(["unnamed_pair", "procedure", "tg__inbox", "works_label", "only_other"])(
    "if it cannot be called: %s",
    (name) => {
      expect(refusal(call(name)).code).toBe("PGRST202");
    },
  );

  test("without names of functions that the caller may not call", () => {
    expect(refusal(call("closed_functio"), "authenticated").hint).toBe(
      "Perhaps you meant to call the function api.closed_function",
    );
    expect(refusal(call("closed_functio"), "anon").hint).toBeNull();
    expect(refusal(call("closed_function", { a: "1" }), "anon").hint).toBeNull();
  });
});
