import { expect, test } from "vitest";
import type { Caller } from "../../../accounts/identity/caller.ts";
import { parseClaims, serializeClaims } from "../../../accounts/identity/claims.ts";
import { idempotencyScopeOf } from "../../../rest-gateway/idempotency/idempotent-runner.ts";

const of = (claims: Caller["claims"], role = "authenticated") =>
  idempotencyScopeOf({ kind: "known", role, claims, claimsText: serializeClaims(claims), expiresAt: null });

test("tokens of the same user have the same scope", () => {
  const alice = of({ sub: "1", name: "Alice", iat: 1 });
  expect(of({ iat: 2, sub: "1", permissions: [] })).toBe(alice);
  expect(of({ sub: "2", name: "Alice", iat: 1 })).not.toBe(alice);
  expect(of({ sub: "1" }, "admin")).not.toBe(alice);
});

test("tokens without a subject are compared by their other claims, in any order", () => {
  const key = of({ role: "anon", ref: "app", iat: 1, exp: 2, nbf: 1, jti: "a" }, "anon");
  expect(of({ iat: 3, ref: "app", role: "anon" }, "anon")).toBe(key);
  expect(of({ role: "anon", ref: "another" }, "anon")).not.toBe(key);
  expect(of({ role: "anon" }, "anon")).not.toBe(key);
});

test("large numeric claims are compared exactly", () => {
  const [one, other] = ["9007199254740992", "9007199254740993"].map((org) => of(parseClaims(`{"org":${org}}`)!));
  expect(one).not.toBe(other);
});

test.each([[""], [null], [1], [{}]])("a subject is a non-empty string, not %j", (sub) => {
  expect(of({ sub, email: "a" })).not.toBe(of({ sub, email: "b" }));
});

test("a subject cannot equal a set of claims", () => {
  expect(of({ sub: JSON.stringify({ a: 1 }) })).not.toBe(of({ a: 1 }));
});
