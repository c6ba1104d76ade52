import { securityHeaders } from "../../security-headers.ts";

/** Those of an answer that stand beside what SQL says. */
const OURS = [
  ...Object.keys(securityHeaders()),
  "Access-Control-Allow-Credentials",
  "Access-Control-Allow-Origin",
  "Access-Control-Expose-Headers",
  "Content-Type",
  "Proxy-Status",
  "Server-Timing",
  "Vary",
  "WWW-Authenticate",
  "X-Consistency",
  "X-RateLimit-Limit",
  "X-RateLimit-Remaining",
  "X-RateLimit-Reset",
  "X-Request-Id",
];

const SPELLED: ReadonlyMap<string, string> = new Map(OURS.map((name) => [name.toLowerCase(), name]));

/** A name from SQL as we spell it: in other letters it would be sent beside ours instead of in its place. */
export function spelled(name: string): string {
  return SPELLED.get(name.toLowerCase()) ?? name;
}
