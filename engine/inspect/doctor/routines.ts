import { exposedSchemas } from "../../catalog/exposed-schemas.ts";
import type { Routine } from "../../catalog/routines.ts";
import { quotedName } from "../../quoted-name.ts";
import type { Facts } from "./facts.ts";
import type { Finding } from "./finding.ts";

/** Functions that act with their owner's rights, and can be called by clients. */
export function routineFindings({ catalog, clients }: Facts): Finding[] {
  const routines = exposedSchemas(catalog).flatMap((schema) => [...schema.routines.values()].flat());
  return routines
    .filter((routine) => routine.securityDefiner && clients.some((role) => catalog.mayRole(role, "execute", routine)))
    .flatMap((routine): Finding[] => {
      const name = signatureOf(routine);
      const callers = clients.filter((role) => catalog.mayRole(role, "execute", routine)).join(", ");
      const findings: Finding[] = [
        {
          kind: "advice",
          what: `${name} acts with the rights of ${routine.owner}, past the policies, and ${callers} may call it.`,
          fix: `alter function ${name} security invoker;  -- unless that is what it is for`,
        },
      ];
      if (routine.settings.has("search_path")) return findings;
      return [
        {
          kind: "danger",
          what: `${name} acts with the rights of ${routine.owner}, and looks names up where its caller says.`,
          fix: `alter function ${name} set search_path = '';  -- and write names with their schemas in it`,
        },
        ...findings,
      ];
    });
}

function signatureOf({ schema, name, arguments: all }: Routine): string {
  return `${quotedName(schema, name)}(${all.map(({ type }) => type.sqlName).join(", ")})`;
}
