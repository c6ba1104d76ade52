import { isIPv6 } from "node:net";
import { plainAddress } from "../plain-address.ts";

/** Whoever has an IPv6 address has 2^64 of them, and is one sender all the same. */
export function countedAddress(address: string | null): string {
  if (address === null) return "unknown";
  const plain = plainAddress(address);
  if (!isIPv6(plain)) return plain;
  const [head = "", tail] = plain.split("::");
  const groups = head === "" ? [] : head.split(":");
  const missing = tail === undefined ? 0 : 8 - groups.length - (tail === "" ? 0 : tail.split(":").length);
  const network = [...groups, ...Array<string>(missing).fill("0"), ...(tail ? tail.split(":") : [])].slice(0, 4);
  return `${network.map((group) => Number.parseInt(group, 16).toString(16)).join(":")}::/64`;
}
