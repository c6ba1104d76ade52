import { describe, expect, test } from "vitest";
import { fingerprintOf, type KeptAnswer, placeOf, seal, unseal } from "../../../rest-gateway/idempotency/seal.ts";

const place = placeOf("table", "alice", "key");
const answer = (body: string | Buffer | null): KeptAnswer => ({
  fingerprint: "f",
  response: { status: 201, headers: { Location: "/orders?id=eq.1", "Set-Cookie": ["a=1", "b=\n"] }, body },
});

describe("a place", () => {
  test("is the same for the same sender and key", () => {
    expect(placeOf("table", "alice", "key")).toEqual(place);
  });

  test.each([
    ["another part of the service", placeOf("refresh", "alice", "key")],
    ["another sender", placeOf("table", "bob", "key")],
    ["another key", placeOf("table", "alice", "kez")],
    ["letters moved from one to the other", placeOf("table", "alicek", "ey")],
  ])("is another one for %s", (_what, { id, secret }) => {
    expect(id).not.toBe(place.id);
    expect(secret.equals(place.secret)).toBe(false);
  });

  test("does not tell its secret", () => {
    expect(place.id).toMatch(/^[0-9a-f]{64}$/);
    expect(place.secret).toHaveLength(32);
    expect(place.id).not.toBe(place.secret.toString("hex"));
  });
});

describe("a sealed answer", () => {
  test.each([
    ["text", '[{"item":"Tee\\n"}]\n'],
    ["text beyond ASCII", "ä€😀"],
    ["an empty text", ""],
    ["bytes", Buffer.from([0, 10, 255, 13, 10])],
  ])("holds %s", (_what, body) => {
    const { fingerprint, response } = unseal(seal(answer(body), place), place);
    expect({ fingerprint, response: { ...response, body: null } }).toEqual(answer(null));
    expect(Buffer.compare(response.body as Buffer, Buffer.from(body))).toBe(0);
  });

  test("holds no body at all", () => {
    expect(unseal(seal(answer(null), place), place)).toEqual(answer(null));
  });

  test("opens for nobody else, and not when it was tampered with", () => {
    const sealed = seal(answer("x"), place);
    expect(() => unseal(sealed, placeOf("table", "bob", "key"))).toThrow();
    for (const at of [0, 20, sealed.length - 1]) {
      const tampered = Buffer.from(sealed);
      tampered[at]! ^= 1;
      expect(() => unseal(tampered, place)).toThrow();
    }
  });

  test("is never the same twice", () => {
    expect(seal(answer("x"), place).equals(seal(answer("x"), place))).toBe(false);
  });
});

describe("a fingerprint", () => {
  test("is the same for the same parts, bytes or text", () => {
    expect(fingerprintOf(["POST", Buffer.from("ä")])).toBe(fingerprintOf(["POST", "ä"]));
  });

  test.each([[["ab", "c"]], [["a", "bc", ""]], [["abc"]], [["bc", "a"]], [["a1:b", "c"]]])(
    "keeps parts apart: %j",
    (parts) => {
      expect(fingerprintOf(parts)).not.toBe(fingerprintOf(["a", "bc"]));
    },
  );
});
