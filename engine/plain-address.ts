/**
 * The address alone, whoever tells it: `::ffff:192.0.2.1` is one of IPv4 as a socket of IPv6 sees it, `fe80::1%eth0`
 * names its interface too, and in X-Forwarded-For some proxies add the port, `192.0.2.1:4711` or `[2001:db8::1]:4711`.
 */
export function plainAddress(address: string): string {
  return address
    .replace(/^\[([^\]]*)\](:\d+)?$/, "$1")
    .replace(/^::ffff:(?=\d+\.)/i, "")
    .replace(/^(\d+(?:\.\d+){3}):\d+$/, "$1")
    .replace(/%.*$/, "");
}
