import { isIPv6 } from "node:net";
import { plainAddress } from "../plain-address.ts";

/** The key that rate limits count a client by: the IPv4 address or the IPv6 /64 network, of which one client has all addresses. */
export function clientNetwork(address: string | null): string {
  if (address === null) return "unknown";
  const plain = plainAddress(address);
  if (!isIPv6(plain)) return plain;
  const [head = "", tail] = plain.split("::");
  const groups = head === "" ? [] : head.split(":");
  const missing = tail === undefined ? 0 : 8 - groups.length - (tail === "" ? 0 : tail.split(":").length);
  const network = [...groups, ...Array<string>(missing).fill("0"), ...(tail ? tail.split(":") : [])].slice(0, 4);
  return `${network.map((group) => Number.parseInt(group, 16).toString(16)).join(":")}::/64`;
}
