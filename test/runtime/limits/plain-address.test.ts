import { expect, test } from "vitest";
import { normalizeAddress } from "../../../runtime/limits/ip-address.ts";

test.each([
  ["192.0.2.1", "192.0.2.1"],
  ["::ffff:192.0.2.1", "192.0.2.1"],
  ["::FFFF:192.0.2.1", "192.0.2.1"],
  ["192.0.2.1:4711", "192.0.2.1"],
  ["::ffff:192.0.2.1:4711", "192.0.2.1"],
  ["[2001:db8::1]:4711", "2001:db8::1"],
  ["[2001:db8::1]", "2001:db8::1"],
  ["2001:db8::1", "2001:db8::1"],
  ["2001:db8::1:4711", "2001:db8::1:4711"],
  ["fe80::1%eth0", "fe80::1"],
  ["somewhere", "somewhere"],
])("%j is %j", (result, address) => {
  expect(normalizeAddress(result)).toBe(address);
});
