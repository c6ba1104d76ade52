import { isLoopback } from "../../../engine/auth/federation/outgoing.ts";
import type { GatewayRequest } from "../../http.ts";

/**
 * `localhost` and `127.0.0.1` are one machine, and two sites to a browser: where it uses the other one's name, the cookie of
 * who leaves would not be there when they come back. What it is to ask for instead; null where all is well.
 */
export function underOwnName(
  { headers: { host }, path, rawQuery }: Pick<GatewayRequest, "headers" | "path" | "rawQuery">,
  siteUrl: string,
): string | null {
  const [asked, own] = [URL.parse(`http://${host}`), new URL(siteUrl)];
  if (!isLoopback(asked) || !isLoopback(own) || asked!.port !== own.port || asked!.hostname === own.hostname)
    return null;
  return `${siteUrl}${path}${rawQuery === "" ? "" : `?${rawQuery}`}`;
}
