import { expect, test } from "vitest";
import * as base32 from "../../../../../rest-gateway/functions/thread/deno-modules/base32.ts";
import * as base64 from "../../../../../rest-gateway/functions/thread/deno-modules/base64.ts";
import * as base64url from "../../../../../rest-gateway/functions/thread/deno-modules/base64url.ts";
import * as hex from "../../../../../rest-gateway/functions/thread/deno-modules/hex.ts";

const bytes = new Uint8Array([251, 255, 254, 1]);
/** A view of a part of a buffer. */
const part = new Uint8Array([0, ...bytes, 0]).subarray(1, 5);

test("base64 encodes texts, buffers and views, under both names", () => {
  expect([bytes, part, bytes.buffer].map(base64.encodeBase64)).toEqual(Array(3).fill("+//+AQ=="));
  expect(base64.encode("grün")).toBe("Z3LDvG4=");
  expect(base64.decode("+//+AQ==")).toEqual(bytes);
  expect(() => base64.decodeBase64("no base64!")).toThrow();
});

test("base32 has the texts of RFC 4648, under both names", () => {
  const texts = { "": "", f: "MY======", fo: "MZXQ====", foo: "MZXW6===", foob: "MZXW6YQ=", fooba: "MZXW6YTB" };
  expect(Object.keys(texts).map(base32.encodeBase32)).toEqual(Object.values(texts));
  expect(Object.values(texts).map((text) => Buffer.from(base32.decode(text)).toString())).toEqual(Object.keys(texts));
  expect(base32.encode(part)).toBe(base32.encodeBase32(bytes));
  expect(() => base32.decodeBase32("my======")).toThrow(TypeError);
});

test("base64url has no padding, and takes it", () => {
  expect(base64url.encode(bytes)).toBe("-__-AQ");
  expect(["-__-AQ", "-__-AQ=="].map(base64url.decodeBase64Url)).toEqual([bytes, bytes]);
  expect(() => base64url.decode("+//+AQ")).toThrow(TypeError);
  expect(() => base64url.decode("abcde")).toThrow(TypeError);
});

test("hex has texts by its newer names, and bytes by its older ones", () => {
  expect(hex.encodeHex(part)).toBe("fbfffe01");
  expect(hex.decodeHex("FBfffe01")).toEqual(bytes);
  expect(new TextDecoder().decode(hex.encode(bytes))).toBe("fbfffe01");
  expect(hex.decode(new TextEncoder().encode("fbfffe01"))).toEqual(bytes);
  expect(() => hex.decodeHex("abc")).toThrow(RangeError);
  expect(() => hex.decodeHex("zz")).toThrow(TypeError);
});
