import type { Catalog } from "../catalog/catalog.ts";
import type { Config } from "../config/config.ts";
import type { Logger } from "../output/log.ts";
import { quotedName } from "../pg-client/quoted-name.ts";

type AnonymousRoleState = Pick<Config, "anonRole"> & {
  readonly loginRole: string;
  readonly catalog: Pick<Catalog, "roles">;
};

/** Logs once that anonymous callers are refused because their role is missing, and again if it disappears later. */
export function makeMissingRoleWarning(log: Pick<Logger, "warn">): (state: AnonymousRoleState) => void {
  let missing: string | null = null;
  return ({ anonRole, loginRole, catalog }) => {
    const isMissing = !catalog.roles.has(anonRole);
    if (isMissing && missing !== anonRole) {
      const [role, login] = [quotedName(anonRole), quotedName(loginRole)];
      log.warn(
        { role: anonRole },
        `callers without credentials are refused: requests cannot become ${role} (PGRST_DB_ANON_ROLE). ` +
          `To serve them: create role ${role}; grant ${role} to ${login};`,
      );
    }
    missing = isMissing ? anonRole : null;
  };
}
