import type {} from "postgraphile";
import type { PgRoles } from "postgraphile/graphile-build-pg/pg-introspection";
import { quotedName } from "../engine/quoted-name.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      ClientRolesPlugin: true;
    }
  }
}

/**
 * PgRBACPlugin shows what any role that requests can become was granted. A role that policies do not bind is a server's
 * own and was granted everything: counted in, it would put every internal column into the inputs that all clients see.
 */
export const ClientRolesPlugin: GraphileConfig.Plugin = {
  name: "ClientRolesPlugin",
  description: "What only a role beyond all policies may do is left out of the schema",
  gather: {
    hooks: {
      pgIntrospection_introspection(_info, { introspection }) {
        const { roles, current_user: login, classes, attributes, procs } = introspection;
        const beginnings = roles.filter((role) => isServers(role, login)).map(({ rolname }) => `${quoted(rolname)}=`);
        const ofClients = (grants: readonly string[] | null) =>
          grants?.filter((grant) => !beginnings.some((beginning) => grant.startsWith(beginning))) ?? null;

        for (const entity of classes) entity.relacl = ofClients(entity.relacl);
        for (const entity of attributes) entity.attacl = ofClients(entity.attacl);
        for (const entity of procs) entity.proacl = ofClients(entity.proacl);
      },
    },
  },
};

function isServers({ rolbypassrls, rolsuper, rolname }: PgRoles, login: string): boolean {
  return rolbypassrls === true && rolsuper !== true && rolname !== login;
}

/** As in `reader=r/owner`, which is how Postgres writes a grant. */
function quoted(role: string): string {
  return /^\w+$/.test(role) ? role : quotedName(role);
}
