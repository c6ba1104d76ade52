import { expect, test } from "vitest";
import { clientInfoParameter } from "../../../accounts/identity/client-info.ts";

const addressOf = (address: string | null) =>
  JSON.parse(clientInfoParameter({ address, userAgent: null, requestId: null })).address;

test.each([
  ["192.0.2.1", "192.0.2.1"],
  ["::ffff:192.0.2.1", "192.0.2.1"],
  ["::FFFF:192.0.2.1", "192.0.2.1"],
  ["2001:db8::1", "2001:db8::1"],
  ["fe80::1%eth0", "fe80::1"],
  ["192.0.2.1:4711", "192.0.2.1"],
  ["somewhere", null],
  ["", null],
  [null, null],
])("the address %j is %j to Postgres", (given, known) => {
  expect(addressOf(given) || null).toBe(known);
});

test("a long user agent is truncated", () => {
  const { user_agent } = JSON.parse(
    clientInfoParameter({ address: null, userAgent: "x".repeat(9_000), requestId: "r" }),
  );
  expect(user_agent).toHaveLength(500);
});
