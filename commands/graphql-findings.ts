import type { Finding } from "../engine/inspect/doctor/finding.ts";
import type { LeftOut } from "../plugins/left-out.ts";

/** What callers may use and GraphQL does not have. */
export function graphqlFindings(leftOut: readonly LeftOut[]): Finding[] {
  return leftOut.map(({ object, reason, fix }) => {
    return { kind: "advice", what: `GraphQL is served without ${object}: ${reason}.`, fix };
  });
}
