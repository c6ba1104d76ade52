import { expect, test } from "vitest";
import {
  crypto,
  timingSafeEqual,
  toHashString,
} from "../../../../../rest-gateway/functions/thread/deno-modules/crypto.ts";

const text = new TextEncoder().encode("abc");

test("digests that Web Crypto lacks are there, of bytes and of streams of bytes", async () => {
  expect(toHashString(await crypto.subtle.digest("MD5", text))).toBe("900150983cd24fb0d6963f7d28e17f72");
  expect(toHashString(crypto.subtle.digestSync({ name: "sha-1" }, [text.subarray(0, 1), text.subarray(1)]))).toBe(
    "a9993e364706816aba3e25717850c26c9cd0d89d",
  );
  const stream = new Blob([text]).stream();
  expect(toHashString(await crypto.subtle.digest("SHA-256", stream), "base64")).toBe(
    "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=",
  );
  await expect(crypto.subtle.digest("TIGER", text)).rejects.toThrow("The digest TIGER is not available");
});

test("the rest is that of Web Crypto", async () => {
  const key = await crypto.subtle.importKey("raw", text, { name: "HMAC", hash: "SHA-256" }, false, ["sign", "verify"]);
  const signature = await crypto.subtle.sign("HMAC", key, text);
  expect(await crypto.subtle.verify("HMAC", key, signature, text)).toBe(true);
  expect(crypto.randomUUID()).toMatch(/^[\da-f-]{36}$/);
});

test("timingSafeEqual compares bytes of any kind", () => {
  expect(timingSafeEqual(text, text.buffer)).toBe(true);
  expect(timingSafeEqual(text, new Uint8Array([97, 98, 100]))).toBe(false);
  expect(timingSafeEqual(text, new Uint8Array([97]))).toBe(false);
});
