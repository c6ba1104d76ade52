import type { Facts } from "./facts.ts";
import type { Finding } from "./finding.ts";

/** Functions that clients do not call by themselves, but which policies, triggers and other functions call for them. */
export function hiddenRoutineFindings({ server }: Facts): Finding[] {
  return server.looseDefiners.map(({ signature, owner }) => ({
    kind: "advice",
    what: `${signature} acts with the rights of ${owner}, and looks names up where its caller says.`,
    fix: `alter function ${signature} set search_path = '';  -- and write names with their schemas in it`,
  }));
}
