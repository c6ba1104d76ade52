/** `a=1; b="2"`; of several of one name the first counts, which is the one of the longest path (RFC 6265 §5.4). */
export function readCookies(header: unknown): Readonly<Record<string, string>> {
  if (typeof header !== "string") return {};
  const pairs = header.split(";").flatMap((part) => {
    const [name = "", ...value] = part.trim().split("=");
    return name === "" ? [] : [[name, value.join("=")] as const];
  });
  const cookies = new Map<string, string>();
  for (const [name, value] of pairs) if (!cookies.has(name)) cookies.set(name, value);
  return Object.fromEntries(cookies);
}

/** Null without one, or an empty one. */
export function readCookie(header: unknown, name: string): string | null {
  const cookies = readCookies(header);
  return (Object.hasOwn(cookies, name) && cookies[name]) || null;
}
