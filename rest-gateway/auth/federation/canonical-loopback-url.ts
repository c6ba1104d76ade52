import { isLoopback } from "../../../engine/auth/federation/safe-fetch.ts";
import type { GatewayRequest } from "../../http.ts";

/**
 * `localhost` and `127.0.0.1` are different sites to a browser, so a cookie that is set under one is missing when the
 * provider redirects to the other. Returns the URL under the service's own host name; null if the request uses it already.
 */
export function canonicalLoopbackUrl(
  { headers: { host }, path, rawQuery }: Pick<GatewayRequest, "headers" | "path" | "rawQuery">,
  siteUrl: string,
): string | null {
  const [requested, own] = [URL.parse(`http://${host}`), new URL(siteUrl)];
  if (
    !isLoopback(requested) ||
    !isLoopback(own) ||
    requested!.port !== own.port ||
    requested!.hostname === own.hostname
  )
    return null;
  return `${siteUrl}${path}${rawQuery === "" ? "" : `?${rawQuery}`}`;
}
