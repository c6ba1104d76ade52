import type { Introspection, PgClass, PgRoles } from "graphile-build-pg/pg-introspection";
import { quotedName } from "#postgres/client";

declare global {
  namespace DataplanPg {
    interface PgResourceExtensions {
      /** True if only roles that bypass RLS have grants on it. */
      isServerOnly?: boolean;
    }
  }
}

/**
 * PgRBACPlugin shows everything granted to any role that requests can switch to. A role that bypasses RLS is for servers and has all
 * grants: it would put every internal column into the inputs of documented types. So its grants count only for tables on which no
 * other role has any.
 */
export const ClientRolesPlugin: GraphileConfig.Plugin = {
  name: "ClientRolesPlugin",
  description: "Grants of roles that bypass RLS count only for tables on which clients have no grants",
  gather: {
    hooks: {
      pgIntrospection_introspection(_info, { introspection }) {
        const { classes, procs } = introspection;
        const { serverRoles: servers, clientRoles: clients } = granteesOf(introspection);
        const ofClients = (grants: GrantList) => grants?.filter((grant) => !servers.has(granteeOf(grant))) ?? null;
        for (const entity of classes) {
          const attributes = entity.getAttributes();
          const grantees = new Set(
            [entity.relacl, ...attributes.map(({ attacl }) => attacl)].flatMap(granteesOfGrants),
          );
          if (!grantees.isDisjointFrom(servers) && grantees.isDisjointFrom(clients)) {
            serverOnlyClasses.add(entity);
            continue;
          }
          entity.relacl = ofClients(entity.relacl);
          for (const attribute of attributes) attribute.attacl = ofClients(attribute.attacl);
        }
        for (const entity of procs) entity.proacl = ofClients(entity.proacl);
      },
      pgTables_PgResourceOptions(_info, { pgClass, resourceOptions }) {
        if (serverOnlyClasses.has(pgClass))
          resourceOptions.extensions = { ...resourceOptions.extensions, isServerOnly: true };
      },
    },
  },
};

const serverOnlyClasses = new WeakSet<PgClass>();

type GrantList = readonly string[] | null;
type Grantees = { readonly serverRoles: ReadonlySet<string>; readonly clientRoles: ReadonlySet<string> };

/** The roles that requests can switch to, spelled as in grants. */
function granteesOf({ roles, auth_members: memberships, current_user: login }: Introspection): Grantees {
  const byId = new Map(roles.map((role) => [role._id, role]));
  const byMember = Map.groupBy(memberships, ({ member }) => member);
  const reachable = new Set(roles.filter(({ rolname }) => rolname === login));
  // The iteration includes roles that are added during it.
  for (const { _id } of reachable) {
    for (const { roleid } of byMember.get(_id) ?? []) {
      const role = byId.get(roleid);
      if (role) reachable.add(role);
    }
  }
  const clients = [...reachable].filter((role) => !isServerRole(role, login));
  return {
    serverRoles: new Set(
      roles.filter((role) => isServerRole(role, login)).map(({ rolname }) => quoteRoleName(rolname)),
    ),
    clientRoles: new Set([PUBLIC, ...clients.map(({ rolname }) => quoteRoleName(rolname))]),
  };
}

const PUBLIC = "";

function isServerRole({ rolbypassrls, rolsuper, rolname }: PgRoles, login: string): boolean {
  return rolbypassrls === true && rolsuper !== true && rolname !== login;
}

function granteesOfGrants(grants: GrantList): string[] {
  return grants?.map(granteeOf) ?? [];
}

/** `reader` of the ACL item `reader=r/owner`. */
function granteeOf(grant: string): string {
  return /^(?:"(?:[^"]|"")*"|[^"=]*)/.exec(grant)![0];
}

function quoteRoleName(role: string): string {
  return /^\w+$/.test(role) ? role : quotedName(role);
}
