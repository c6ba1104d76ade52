import { describe, expect, test } from "vitest";
import { clientNetwork, clientSite } from "../../../engine/limits/ip-address.ts";

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
