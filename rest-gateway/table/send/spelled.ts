import { securityHeaders } from "../../security-headers.ts";

/** Those that an answer or a refusal may have beside what SQL says. */
const OURS = [
  ...Object.keys(securityHeaders({ overHttps: true })),
  "Access-Control-Allow-Credentials",
  "Access-Control-Allow-Origin",
  "Access-Control-Expose-Headers",
  "Allow",
  "Content-Location",
  "Content-Profile",
  "Content-Range",
  "Content-Type",
  "Link",
  "Location",
  "Preference-Applied",
  "Proxy-Status",
  "Retry-After",
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
