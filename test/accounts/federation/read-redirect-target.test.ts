import { describe, expect, test } from "vitest";
import { type RequestedRedirect, readRedirectTarget } from "../../../accounts/federation/read-redirect-target.ts";

const ALLOWED = ["https://app.example.org/signed-in", "https://app.example.org/area/*", "com.example.app://signed-in"];
const readTarget = (requested: RequestedRedirect) =>
  readRedirectTarget(requested, "https://service.example.org/base", ALLOWED);
const read = (text: string | null) => readTarget({ text, field: "redirect_to" });

describe("a redirect target", () => {
  test.each([
    [null, null],
    ["/", "https://service.example.org/"],
    ["/articles?page=2#top", "https://service.example.org/articles?page=2#top"],
    ["https://service.example.org/health", "https://service.example.org/health"],
    ["https://app.example.org/signed-in?from=here", "https://app.example.org/signed-in?from=here"],
    ["https://app.example.org/area/one/two", "https://app.example.org/area/one/two"],
    ["com.example.app://signed-in", "com.example.app://signed-in"],
  ])("%j is %j", (text, target) => expect(read(text)).toBe(target));

  test.each([
    "https://evil.example.org/",
    "//evil.example.org/",
    "/\\evil.example.org",
    "\\\\evil.example.org",
    "/\n/evil.example.org",
    "https://service.example.org:444/",
    "http://service.example.org/",
    "https://service.example.org.evil.example/",
    "https://me@service.example.org/",
    "https://app.example.org/",
    "https://app.example.org/signed-in/more",
    "https://app.example.org/signed-in-too",
    "https://app.example.org/area",
    "https://app.example.org/area/../other",
    "https://app.example.org/area/%2e%2e/other",
    "com.example.app://other",
    "com.example.other://signed-in",
    "javascript:alert(1)",
    "data:text/html,x",
    "blob:https://service.example.org/0d8f",
    "https://",
  ])("%j is refused", (text) => expect(() => read(text)).toThrow("not allowed"));

  test("has at most 4,096 characters, because it is stored", () => {
    expect(read(`/${"a".repeat(4_000)}`)).toHaveLength("https://service.example.org/".length + 4_000);
    expect(() => read(`/${"a".repeat(4_096)}`)).toThrow("at most 4096 characters");
  });

  test.each(["https://evil.example.org/", `/${"a".repeat(4_096)}`])(
    "is refused with the name of its request field",
    (text) => {
      for (const field of ["redirect_to", "redirectTo"]) {
        const refusal = expect.objectContaining({ details: [{ field, message: expect.any(String) }] });
        expect(() => readTarget({ text, field })).toThrow(refusal);
      }
    },
  );
});
