import { describe, expect, test } from "vitest";
import {
  decryptResponse,
  deriveStorageKey,
  encryptResponse,
  fingerprintParts,
  type StoredResponse,
} from "../../../rest-gateway/idempotency/idempotent-runner.ts";

const place = deriveStorageKey("table", "alice", "key");
const answer = (body: string | Buffer | null): StoredResponse => ({
  fingerprint: "f",
  response: { status: 201, headers: { Location: "/orders?id=eq.1", "Set-Cookie": ["a=1", "b=\n"] }, body },
});

describe("a storage key", () => {
  test("is the same for the same caller and idempotency key", () => {
    expect(deriveStorageKey("table", "alice", "key")).toEqual(place);
  });

  test.each([
    ["another part of the service", deriveStorageKey("refresh", "alice", "key")],
    ["another sender", deriveStorageKey("table", "bob", "key")],
    ["another key", deriveStorageKey("table", "alice", "kez")],
    ["letters moved from one to the other", deriveStorageKey("table", "alicek", "ey")],
  ])("is different for %s", (_what, { id, secret }) => {
    expect(id).not.toBe(place.id);
    expect(secret.equals(place.secret)).toBe(false);
  });

  test("does not reveal its secret", () => {
    expect(place.id).toMatch(/^[0-9a-f]{64}$/);
    expect(place.secret).toHaveLength(32);
    expect(place.id).not.toBe(place.secret.toString("hex"));
  });
});

describe("an encrypted response", () => {
  test.each([
    ["text", '[{"item":"Tee\\n"}]\n'],
    ["text beyond ASCII", "ä€😀"],
    ["an empty text", ""],
    ["bytes", Buffer.from([0, 10, 255, 13, 10])],
  ])("holds %s", (_what, body) => {
    const { fingerprint, response } = decryptResponse(encryptResponse(answer(body), place), place);
    expect({ fingerprint, response: { ...response, body: null } }).toEqual(answer(null));
    expect(Buffer.compare(response.body as Buffer, Buffer.from(body))).toBe(0);
  });

  test("can have no body", () => {
    expect(decryptResponse(encryptResponse(answer(null), place), place)).toEqual({ ...answer(null), isBrief: false });
  });

  test("cannot be decrypted with another key or after tampering", () => {
    const sealed = encryptResponse(answer("x"), place);
    expect(() => decryptResponse(sealed, deriveStorageKey("table", "bob", "key"))).toThrow();
    for (const at of [0, 20, sealed.length - 1]) {
      const tampered = Buffer.from(sealed);
      tampered[at]! ^= 1;
      expect(() => decryptResponse(tampered, place)).toThrow();
    }
  });

  test("is different each time", () => {
    expect(encryptResponse(answer("x"), place).equals(encryptResponse(answer("x"), place))).toBe(false);
  });
});

describe("a fingerprint", () => {
  test("is the same for the same parts, bytes or text", () => {
    expect(fingerprintParts(["POST", Buffer.from("ä")])).toBe(fingerprintParts(["POST", "ä"]));
  });

  test.each([[["ab", "c"]], [["a", "bc", ""]], [["abc"]], [["bc", "a"]], [["a1:b", "c"]]])(
    "distinguishes parts: %j",
    (parts) => {
      expect(fingerprintParts(parts)).not.toBe(fingerprintParts(["a", "bc"]));
    },
  );
});
