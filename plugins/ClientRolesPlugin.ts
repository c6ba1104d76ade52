import type {} from "postgraphile";
import type { Introspection, PgClass, PgRoles } from "postgraphile/graphile-build-pg/pg-introspection";
import { quotedName } from "../engine/quoted-name.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      ClientRolesPlugin: true;
    }
  }
  namespace DataplanPg {
    interface PgResourceExtensions {
      /** Only roles that policies do not bind were granted anything of it. */
      isForServers?: boolean;
    }
  }
}

/**
 * PgRBACPlugin shows what any role that requests can become was granted. A role that policies do not bind is a server's
 * own and was granted everything: counted in, it would put every internal column into the inputs of documented types. So it counts
 * for those tables only of which nobody else was granted anything.
 */
export const ClientRolesPlugin: GraphileConfig.Plugin = {
  name: "ClientRolesPlugin",
  description: "Of tables for clients the schema has what clients were granted; the others are for servers",
  gather: {
    hooks: {
      pgIntrospection_introspection(_info, { introspection }) {
        const { classes, procs } = introspection;
        const { servers, clients } = granteesOf(introspection);
        const ofClients = (grants: Grants) => grants?.filter((grant) => !servers.has(granteeOf(grant))) ?? null;
        for (const entity of classes) {
          const attributes = entity.getAttributes();
          const grantees = new Set([entity.relacl, ...attributes.map(({ attacl }) => attacl)].flatMap(granteesIn));
          if (!grantees.isDisjointFrom(servers) && grantees.isDisjointFrom(clients)) {
            forServers.add(entity);
            continue;
          }
          entity.relacl = ofClients(entity.relacl);
          for (const attribute of attributes) attribute.attacl = ofClients(attribute.attacl);
        }
        for (const entity of procs) entity.proacl = ofClients(entity.proacl);
      },
      pgTables_PgResourceOptions(_info, { pgClass, resourceOptions }) {
        if (forServers.has(pgClass)) resourceOptions.extensions = { ...resourceOptions.extensions, isForServers: true };
      },
    },
  },
};

const forServers = new WeakSet<PgClass>();

type Grants = readonly string[] | null;
type Grantees = { readonly servers: ReadonlySet<string>; readonly clients: ReadonlySet<string> };

/** What requests can become, as grants call them. */
function granteesOf({ roles, auth_members: memberships, current_user: login }: Introspection): Grantees {
  const byId = new Map(roles.map((role) => [role._id, role]));
  const byMember = Map.groupBy(memberships, ({ member }) => member);
  const reachable = new Set(roles.filter(({ rolname }) => rolname === login));
  // Those that are added while it is gone through are gone through, too.
  for (const { _id } of reachable) {
    for (const { roleid } of byMember.get(_id) ?? []) {
      const role = byId.get(roleid);
      if (role) reachable.add(role);
    }
  }
  const clients = [...reachable].filter((role) => !isServers(role, login));
  return {
    servers: new Set(roles.filter((role) => isServers(role, login)).map(({ rolname }) => quoted(rolname))),
    clients: new Set([PUBLIC, ...clients.map(({ rolname }) => quoted(rolname))]),
  };
}

const PUBLIC = "";

function isServers({ rolbypassrls, rolsuper, rolname }: PgRoles, login: string): boolean {
  return rolbypassrls === true && rolsuper !== true && rolname !== login;
}

function granteesIn(grants: Grants): string[] {
  return grants?.map(granteeOf) ?? [];
}

/** `reader` of `reader=r/owner`, which is how Postgres writes a grant. */
function granteeOf(grant: string): string {
  return /^(?:"(?:[^"]|"")*"|[^"=]*)/.exec(grant)![0];
}

function quoted(role: string): string {
  return /^\w+$/.test(role) ? role : quotedName(role);
}
