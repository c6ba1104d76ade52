import type { IncomingMessage } from "node:http";
import express from "express";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { makeClientConnectionReader } from "../../http/request.ts";

type Trust = boolean | number | readonly string[];

/** Compares a request from the socket with the properties that Express gives it. */
function compare(trustProxy: Trust, remoteAddress: string, headers: Readonly<Record<string, string>>) {
  const request = { socket: { remoteAddress }, headers } as unknown as IncomingMessage;
  const app = express().set("trust proxy", trustProxy);
  const seen = Object.assign(Object.create(app.request), request, { app });
  return {
    ours: makeClientConnectionReader({ trustProxy })(request),
    express: { address: seen.ip as string, isSecure: seen.secure as boolean },
  };
}

const address = fc.constantFrom(
  "127.0.0.1",
  "::1",
  "10.0.0.5",
  "203.0.113.7",
  "198.51.100.2",
  "2001:db8::1",
  "nonsense",
);

describe("the client address of a request", () => {
  test("is the same as in Express, for any forwarding headers and trusted proxies", () => {
    fc.assert(
      fc.property(
        fc.constantFrom<Trust>(false, true, 1, 2, ["loopback"], ["10.0.0.0/8", "loopback"]),
        address,
        fc.array(address, { maxLength: 4 }),
        fc.constantFrom(null, "https", "http", "https, http"),
        (trust, remote, chain, scheme) => {
          const headers = {
            ...(chain.length > 0 && { "x-forwarded-for": chain.join(", ") }),
            ...(scheme !== null && { "x-forwarded-proto": scheme }),
          };
          const { ours, express: theirs } = compare(trust, remote, headers);
          expect(ours).toEqual(theirs);
        },
      ),
    );
  });

  test("is the socket's if no proxy is trusted, whatever the headers", () => {
    const headers = { "x-forwarded-for": "203.0.113.7", "x-forwarded-proto": "https" };
    expect(compare(false, "10.0.0.5", headers).ours).toEqual({ address: "10.0.0.5", isSecure: false });
    expect(compare(true, "10.0.0.5", headers).ours).toEqual({ address: "203.0.113.7", isSecure: true });
  });
});
