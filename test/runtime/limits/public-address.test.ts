import { describe, expect, test } from "vitest";
import { isPublicAddress } from "../../../runtime/limits/ip-address.ts";

/** IANA's registries of special-purpose addresses (RFC 6890), with multicast and reserved ones: the first and the last address of each. */
const SPECIAL = {
  "this network": ["0.0.0.0", "0.255.255.255"],
  "private use": ["10.0.0.0", "10.255.255.255", "172.16.0.0", "172.31.255.255", "192.168.0.0", "192.168.255.255"],
  "shared address space": ["100.64.0.0", "100.127.255.255"],
  loopback: ["127.0.0.0", "127.255.255.255", "::1"],
  "link local": ["169.254.0.0", "169.254.169.254", "169.254.255.255", "fe80::", "febf:ffff::1"],
  "IETF protocol assignments": ["192.0.0.0", "192.0.0.255", "2001::", "2001:1ff:ffff::1"],
  documentation: [
    ...["192.0.2.0", "192.0.2.255", "198.51.100.0", "198.51.100.255", "203.0.113.0", "203.0.113.255"],
    ...["2001:db8::", "2001:db8:ffff::1", "3fff::", "3fff:fff:ffff::1"],
  ],
  "6to4 relay anycast": ["192.88.99.0", "192.88.99.255"],
  benchmarking: ["198.18.0.0", "198.19.255.255", "2001:2::", "2001:2:0:ffff::1"],
  multicast: ["224.0.0.0", "239.255.255.255", "ff00::", "ff02::1", "ffff::1"],
  reserved: ["240.0.0.0", "255.255.255.254", "4000::1", "e000::1"],
  "limited broadcast": ["255.255.255.255"],
  unspecified: ["::"],
  "IPv4-mapped, of a private one": ["::ffff:10.0.0.1", "::ffff:7f00:1", "::ffff:192.0.2.1", "0:0:0:0:0:ffff:a00:1"],
  "IPv4-compatible": ["::127.0.0.1", "::808:808"],
  "IPv4-translated (SIIT)": ["::ffff:0:10.0.0.1", "::ffff:0:808:808"],
  "IPv4-IPv6 translation (NAT64)": ["64:ff9b::a00:1", "64:ff9b::808:808", "64:ff9b:1::", "64:ff9b:1:ffff::1"],
  "discard only, dummy": ["100::", "100::ffff:ffff:ffff:ffff", "100:0:0:1::1"],
  Teredo: ["2001::1", "2001:0:ffff:ffff::1"],
  "deprecated ORCHID": ["2001:10::", "2001:1f:ffff::1"],
  "6to4": ["2002::", "2002:a00:1::1", "2002:808:808::1"],
  "segment routing": ["5f00::", "5f00:ffff::1"],
  "unique local": ["fc00::", "fdff:ffff::1"],
  "deprecated site local": ["fec0::1", "feff::1"],
};

describe.each(Object.entries(SPECIAL))("an address of the range for %s", (_range, addresses) => {
  test.each(addresses)("is not public: %s", (address) => expect(isPublicAddress(address)).toBe(false));
});

test.each([
  ...["1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0"],
  ...["169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.0", "192.0.3.0", "192.88.98.255"],
  ...[
    "192.167.255.255",
    "192.169.0.0",
    "198.17.255.255",
    "198.20.0.0",
    "198.51.99.255",
    "203.0.114.0",
    "223.255.255.255",
  ],
  ...["2000::1", "2001:200::1", "2001:db7::1", "2001:db9::1", "2003::1", "2606:4700::1111", "3ffe::1", "3fff:1000::1"],
  "::ffff:1.1.1.1",
])("the address %s is public", (address) => expect(isPublicAddress(address)).toBe(true));

test.each(["", "localhost", "1.2.3", "::g"])("an invalid address (%j) is not public", (text) => {
  expect(isPublicAddress(text)).toBe(false);
});
