import { describe, expect, test } from "vitest";
import { callerKey } from "../../../accounts/identity/caller.ts";

const ADDRESS = () => "192.0.2.1";

describe("the key of a caller", () => {
  test.each([
    ["a user, wherever she is", { role: "authenticated", sub: "7" }, "user 7"],
    ["an API key without a user", { role: "authenticated", api_key: "k" }, "key k"],
    ["an API key of a user", { role: "authenticated", api_key: "k", sub: "7" }, "user 7"],
    ["the address of a token that many show", { role: "anon" }, "address 192.0.2.1"],
    ["the address where the subject is empty", { role: "anon", sub: "" }, "address 192.0.2.1"],
    ["the address without credentials", null, "address 192.0.2.1"],
  ])("is %s", (_what, claims, key) => {
    expect(callerKey(claims, ADDRESS)).toBe(key);
  });

  test("is the same for all addresses of an IPv6 network", () => {
    expect(callerKey(null, () => "2001:db8::1")).toBe(callerKey(null, () => "2001:db8::2"));
  });

  test("is the same for all callers with an unknown address", () => {
    expect(callerKey(null, () => null)).toBe("address unknown");
  });
});
