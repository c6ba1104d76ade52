import { describe, expect, test } from "vitest";
import {
  addressKind,
  clientNetwork,
  clientRange,
  clientSite,
  normalizeAddress,
} from "../../../runtime/limits/ip-address.ts";

describe("the client network of an address", () => {
  test.each([
    ["203.0.113.7", "203.0.113.7"],
    ["::ffff:203.0.113.7", "203.0.113.7"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"],
    ["2001:DB8:1:2::9", "2001:db8:1:2::/64"],
    ["2001:db8::9", "2001:db8:0:0::/64"],
    ["fe80::1%eth0", "fe80:0:0:0::/64"],
    ["203.0.113.7:4711", "203.0.113.7"],
    ["[2001:db8:1:2::9]:4711", "2001:db8:1:2::/64"],
    ["::1", "0:0:0:0::/64"],
    ["::", "0:0:0:0::/64"],
    [null, "unknown"],
  ])("%s is %s", (address, counted) => {
    expect(clientNetwork(address)).toBe(counted);
  });
});

describe("the site of an address", () => {
  test.each([
    ["203.0.113.7", "203.0.113.7"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1::/48"],
    ["2001:db8::9", "2001:db8:0::/48"],
    [null, "unknown"],
  ])("%s is %s", (address, site) => {
    expect(clientSite(address)).toBe(site);
  });
});

describe("the range of an address", () => {
  test.each([
    ["203.0.113.7", "203.0.113.0/24"],
    ["::ffff:203.0.113.7", "203.0.113.0/24"],
    ["2001:db8:1:2:3:4:5:6", "2001:db8:1::/48"],
    [null, "unknown"],
  ])("%s is %s", (address, range) => {
    expect(clientRange(address)).toBe(range);
  });
});

describe("addresses of cloud metadata", () => {
  test.each([
    "169.254.169.254",
    "169.254.170.2",
    "169.254.170.23",
    "169.254.0.23",
    "169.254.42.42",
    "168.63.129.16",
    "192.0.0.192",
    "100.100.100.200",
    "fd00:ec2::254",
    "fd00:ec2::23",
    "fd00:0ec2:0:0:0:0:0:253",
    "fd20:ce::254",
    "fd00:c1::a9fe:a9fe",
    "fd00:42::42",
    "fe80::a9fe:a9fe",
    "::ffff:169.254.169.254",
    "::ffff:a9fe:a9fe",
    "::ffff:100.100.100.200",
    "::ffff:168.63.129.16",
    "::169.254.169.254",
    "64:ff9b::169.254.169.254",
    "64:ff9b::100.100.100.200",
    "64:ff9b:1::a9fe:a9fe",
    "2002:a9fe:a9fe::1",
    "2001:0:a9fe:a9fe::1",
  ])("%s is neither public nor part of a private network", (address) => {
    expect(addressKind(address)).toBe("other");
  });

  test.each(["10.0.0.1", "100.64.0.1", "fd00:1234::1", "fd00::ec2:254", "::ffff:10.0.0.1"])(
    "%s is private",
    (address) => {
      expect(addressKind(address)).toBe("private");
    },
  );
});

describe("the normal form of an address", () => {
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
});
