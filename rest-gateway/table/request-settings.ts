import type { Occasion } from "../../engine/caller/context.ts";
import type { GatewayRequest } from "../http.ts";

/** What SQL can know of the request, under PostgREST's names; the path begins below the interface's own. */
export function tableOccasion({ id, method, headers }: GatewayRequest, path: string): Occasion {
  const { cookie, ...others } = headers;
  return {
    interface: "table",
    requestId: id,
    method,
    path,
    headers: JSON.stringify(others),
    cookies: cookie ? JSON.stringify(readCookies(cookie)) : "{}",
  };
}

/** `a=1; b="2"` */
function readCookies(header: string): Record<string, string> {
  return Object.fromEntries(
    header.split(";").flatMap((part) => {
      const [name = "", ...value] = part.trim().split("=");
      return name === "" ? [] : [[name, value.join("=")]];
    }),
  );
}
