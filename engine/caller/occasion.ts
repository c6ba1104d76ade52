import type { Interface, Occasion } from "./context.ts";

type Headers = Readonly<Record<string, string | readonly string[] | undefined>>;
type Shown = { readonly id: string; readonly method: string; readonly path: string; readonly headers: Headers };

/** What SQL can know of a request, under PostgREST's names. */
export function occasionOf(door: Interface, { id, method, path, headers }: Shown): Occasion {
  const { cookie, ...others } = headers;
  return {
    interface: door,
    requestId: id,
    method,
    path,
    headers: JSON.stringify(others),
    cookies: typeof cookie === "string" ? JSON.stringify(readCookies(cookie)) : "{}",
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
