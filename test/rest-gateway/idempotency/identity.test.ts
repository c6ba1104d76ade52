import { expect, test } from "vitest";
import type { Caller } from "../../../engine/caller/caller.ts";
import { parseClaims, spellClaims } from "../../../engine/caller/claims.ts";
import { identityOf } from "../../../rest-gateway/idempotency/identity.ts";

const of = (claims: Caller["claims"], role = "authenticated") =>
  identityOf({ kind: "known", role, claims, claimsText: spellClaims(claims), expiresAt: null });

test("a user is the same whatever else the token says", () => {
  const alice = of({ sub: "1", name: "Alice", iat: 1 });
  expect(of({ iat: 2, sub: "1", permissions: [] })).toBe(alice);
  expect(of({ sub: "2", name: "Alice", iat: 1 })).not.toBe(alice);
  expect(of({ sub: "1" }, "admin")).not.toBe(alice);
});

test("who has no subject is told by all lasting claims, in whatever order they stand", () => {
  const key = of({ role: "anon", ref: "app", iat: 1, exp: 2, nbf: 1, jti: "a" }, "anon");
  expect(of({ iat: 3, ref: "app", role: "anon" }, "anon")).toBe(key);
  expect(of({ role: "anon", ref: "another" }, "anon")).not.toBe(key);
  expect(of({ role: "anon" }, "anon")).not.toBe(key);
});

test("organizations whose numbers JavaScript would round to the same one are two", () => {
  const [one, other] = ["9007199254740992", "9007199254740993"].map((org) => of(parseClaims(`{"org":${org}}`)!));
  expect(one).not.toBe(other);
});

test.each([[""], [null], [1], [{}]])("a subject is a text that is not empty, and not %j", (sub) => {
  expect(of({ sub, email: "a" })).not.toBe(of({ sub, email: "b" }));
});

test("a subject is not mistaken for claims", () => {
  expect(of({ sub: JSON.stringify({ a: 1 }) })).not.toBe(of({ a: 1 }));
});
