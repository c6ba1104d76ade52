import { BlockList, isIP, isIPv4, isIPv6 } from "node:net";

/**
 * IPv4 addresses that are not globally reachable, or are translated to others: IANA's special-purpose registry, multicast and reserved
 * addresses.
 */
const SPECIAL_IPV4 = [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  // Azure's host, which configures the machine. It is reachable from virtual machines only.
  "168.63.129.16/32",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/4",
  "240.0.0.0/4",
];

/** The globally routed IPv6 addresses (RFC 4291), except those that embed IPv4 addresses. */
const GLOBAL_IPV6 = "2000::/3";

/** Exceptions within that range: protocol assignments, Teredo, documentation, 6to4. */
const SPECIAL_IPV6 = ["2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20"];

const IPV4_MAPPED = "::ffff:0:0/96";

const LOOPBACK = ["127.0.0.0/8", "::1/128"];

/** Networks of organisations and of containers, with shared address space (RFC 6598) and unique local addresses. */
const PRIVATE = ["10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"];

/**
 * The networks in which clouds provide the credentials of the machine, within the private networks. Each cloud has further
 * services beside its metadata, such as credentials of pods at `fd00:ec2::23`, so whole networks are listed.
 */
const METADATA = [
  // Alibaba
  "100.100.100.0/24",
  // Amazon
  "fd00:ec2::/32",
  // Google
  "fd20:ce::/32",
  // Oracle
  "fd00:c1::/32",
  // Scaleway
  "fd00:42::/32",
];

const specialIPv4 = toBlockList(SPECIAL_IPV4);
const specialIPv6 = toBlockList(SPECIAL_IPV6);
const globalIPv6 = toBlockList([GLOBAL_IPV6]);
const ipv4Mapped = toBlockList([IPV4_MAPPED]);
const loopback = toBlockList(LOOPBACK);
const privateNetworks = toBlockList(PRIVATE);
const metadata = toBlockList(METADATA);

/**
 * Returns the key under which rate limits count a client: the IPv4 address or the IPv6 /64 network, all addresses of which
 * one client has.
 */
export function clientNetwork(address: string | null): string {
  return addressGroup(address, 64);
}

/** Returns the IPv4 address, or the IPv6 /48 network: providers assign up to 65,536 networks to a site. */
export function clientSite(address: string | null): string {
  return addressGroup(address, 48);
}

/** Returns the IPv4 /24, or the IPv6 /48 network: one attacker often has all of it, although its addresses may have different users. */
export function clientRange(address: string | null): string {
  const site = clientSite(address);
  return isIPv4(site) ? `${site.slice(0, site.lastIndexOf(".") + 1)}0/24` : site;
}

function addressGroup(address: string | null, bits: 48 | 64): string {
  if (address === null) return "unknown";
  const plain = normalizeAddress(address);
  if (!isIPv6(plain)) return plain;
  const [head = "", tail] = plain.split("::");
  const groups = head === "" ? [] : head.split(":");
  const missing = tail === undefined ? 0 : 8 - groups.length - (tail === "" ? 0 : tail.split(":").length);
  const all = [...groups, ...Array<string>(missing).fill("0"), ...(tail ? tail.split(":") : [])];
  const network = all.slice(0, bits / 16).map((group) => Number.parseInt(group, 16).toString(16));
  return `${network.join(":")}::/${bits}`;
}

/**
 * Normalizes an address: `::ffff:192.0.2.1` is the IPv4 address of an IPv6 socket, `fe80::1%eth0` includes an
 * interface, and some proxies add the port in X-Forwarded-For: `192.0.2.1:4711` or `[2001:db8::1]:4711`.
 */
export function normalizeAddress(address: string): string {
  return address
    .replace(/^\[([^\]]*)\](:\d+)?$/, "$1")
    .replace(/^::ffff:(?=\d+\.)/i, "")
    .replace(/^(\d+(?:\.\d+){3}):\d+$/, "$1")
    .replace(/%.*$/s, "");
}

/** True if the address is on the public internet: requests that clients cause must not reach the internal network. */
export function isPublicAddress(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return !specialIPv4.check(address, "ipv4");
    case 6:
      // The list of IPv4 addresses also matches their IPv6 notation.
      if (ipv4Mapped.check(address, "ipv6")) return !specialIPv4.check(address, "ipv6");
      return globalIPv6.check(address, "ipv6") && !specialIPv6.check(address, "ipv6");
    default:
      return false;
  }
}

/**
 * `other` is an address that no host has, or that nobody should be able to name, such as link-local addresses and those of
 * metadata services.
 */
export type AddressKind = "public" | "loopback" | "private" | "other";

export function addressKind(address: string): AddressKind {
  if (isPublicAddress(address)) return "public";
  const family = isIP(address) === 4 ? "ipv4" : "ipv6";
  if (isIP(address) === 0 || metadata.check(address, family)) return "other";
  if (loopback.check(address, family)) return "loopback";
  return privateNetworks.check(address, family) ? "private" : "other";
}

function toBlockList(networks: readonly string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address = "", bits] = network.split("/");
    list.addSubnet(address, Number(bits), isIP(address) === 4 ? "ipv4" : "ipv6");
  }
  return list;
}
