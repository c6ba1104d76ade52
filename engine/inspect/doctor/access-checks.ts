import { exposedSchemas, exposedTables } from "../../catalog/catalog.ts";
import type { Routine } from "../../catalog/routines.ts";
import type { CatalogTable } from "../../catalog/tables.ts";
import { quotedName } from "../../pg-client/quoted-name.ts";
import { VERBS } from "../policy-matrix.ts";
import type { DoctorFacts, DoctorFinding } from "./facts.ts";

/** Schemas of ours and of Postgres that clients must never be served. */
const INTERNAL_SCHEMAS = ["auth", "private", "pg_catalog", "information_schema"];

/** The login that requests use: it should be nobody until it becomes the caller's role. */
export function loginFindings({ login, catalog, config }: DoctorFacts): DoctorFinding[] {
  const findings: DoctorFinding[] = [];
  const name = quotedName(login.name);
  if (login.superuser) {
    findings.push({
      kind: "danger",
      problem: `Requests log in as ${name}, a superuser: a mistake here is a mistake without bounds.`,
      fix: "-- Let DATABASE_URL name authenticator, and OWNER_DATABASE_URL the owner.",
    });
  } else if (login.bypassesRowSecurity) {
    const fix = `alter role ${name} nobypassrls;`;
    findings.push({ kind: "danger", problem: `No policy binds ${name}, which requests log in as.`, fix });
  } else if (login.ownsTables) {
    findings.push({
      kind: "danger",
      problem: `Requests log in as ${name}, which owns tables, and policies do not bind owners.`,
      fix: "-- Let DATABASE_URL name a role that owns nothing, and OWNER_DATABASE_URL the owner.",
    });
  }
  if (login.inherits && !login.superuser) {
    const fix = `alter role ${name} noinherit;`;
    findings.push({ kind: "advice", problem: `${name} has the rights of all roles that it can become, at once.`, fix });
  }
  if (!catalog.roles.has(config.anonRole)) {
    findings.push({
      kind: "danger",
      problem: `${name} cannot become ${quotedName(config.anonRole)}: callers without credentials get errors.`,
      fix: `create role ${quotedName(config.anonRole)}; grant ${quotedName(config.anonRole)} to ${name};`,
    });
  }
  return findings;
}

/** What a role has that strangers, or whoever signs in, become. */
export function roleFindings({ server }: DoctorFacts): DoctorFinding[] {
  return server.clients.flatMap(({ name, superuser, bypassesRowSecurity, mayLogIn }): DoctorFinding[] => {
    const role = quotedName(name);
    if (superuser) {
      const fix = `alter role ${role} nosuperuser;`;
      return [{ kind: "danger", problem: `Callers become ${role}, a superuser, whom nothing binds.`, fix }];
    }
    if (bypassesRowSecurity) {
      const fix = `alter role ${role} nobypassrls;`;
      return [{ kind: "danger", problem: `Callers become ${role}, which no policy binds.`, fix }];
    }
    if (!mayLogIn) return [];
    const what = `Somebody may log in as ${role}, past the service: callers need no login.`;
    return [{ kind: "advice", problem: what, fix: `alter role ${role} nologin;` }];
  });
}

/** Tables and views that clients reach past all policies. */
export function exposureFindings(facts: DoctorFacts): DoctorFinding[] {
  return exposedTables(facts.catalog).flatMap((table) => {
    const verbs = grantedVerbs(table, facts);
    return verbs.length > 0 ? describeExposure(table, verbs.join("; "), facts) : [];
  });
}

function describeExposure(table: CatalogTable, who: string, { catalog, clients }: DoctorFacts): DoctorFinding[] {
  const name = quotedName(table.schema, table.name);
  switch (table.kind) {
    case "table":
    case "partitioned table":
      return tableFindings(table, name, who);
    case "view":
      return table.securityInvoker ? [] : [viewFinding(name, who, catalog.server.version)];
    case "materialized view":
    case "foreign table": {
      const what = `Policies cannot bind ${name}, a ${table.kind}: every row is open (${who}).`;
      const roles = clients.map((role) => quotedName(role)).join(", ");
      return [{ kind: "danger", problem: what, fix: `revoke all on ${name} from public, ${roles};` }];
    }
  }
}

function tableFindings({ rowSecurity, policies }: CatalogTable, name: string, roles: string): DoctorFinding[] {
  if (rowSecurity === "off") {
    return [
      {
        kind: "danger",
        problem: `Every row of ${name} is open: row-level security is off (${roles}).`,
        fix: `alter table ${name} enable row level security;`,
      },
    ];
  }
  if (policies.length > 0) return [];
  return [
    {
      kind: "advice",
      problem: `Nobody sees a row of ${name}: it has privileges (${roles}), and no policy.`,
      fix: `create policy select_all on ${name} for select using (true);  -- or whom it concerns`,
    },
  ];
}

function viewFinding(name: string, roles: string, serverVersion: number): DoctorFinding {
  const fix =
    serverVersion >= 150_000
      ? `alter view ${name} set (security_invoker = true);`
      : `-- Postgres 14 has no such views: grant a function in place of ${name}.`;
  return { kind: "danger", problem: `The view ${name} reads past the policies of its tables (${roles}).`, fix };
}

/** `anon: select, insert` */
function grantedVerbs(table: CatalogTable, { catalog, clients }: DoctorFacts): string[] {
  return clients.flatMap((role) => {
    const verbs = VERBS.filter(
      (verb) =>
        catalog.hasPrivilege(role, verb, table) ||
        [...table.columns.keys()].some((column) => catalog.hasPrivilege(role, verb, table, column)),
    );
    return verbs.length > 0 ? [`${role}: ${verbs.join(", ")}`] : [];
  });
}

/** Functions that act with their owner's rights, and can be called by clients. */
export function routineFindings({ catalog, clients }: DoctorFacts): DoctorFinding[] {
  const routines = exposedSchemas(catalog).flatMap((schema) => [...schema.routines.values()].flat());
  return routines
    .filter(
      (routine) => routine.securityDefiner && clients.some((role) => catalog.hasPrivilege(role, "execute", routine)),
    )
    .flatMap((routine): DoctorFinding[] => {
      const name = signatureOf(routine);
      const callers = clients.filter((role) => catalog.hasPrivilege(role, "execute", routine)).join(", ");
      const findings: DoctorFinding[] = [
        {
          kind: "advice",
          problem: `${name} acts with the rights of ${routine.owner}, past the policies, and ${callers} may call it.`,
          fix: `alter function ${name} security invoker;  -- unless that is what it is for`,
        },
      ];
      if (routine.settings.has("search_path")) return findings;
      return [
        {
          kind: "danger",
          problem: `${name} acts with the rights of ${routine.owner}, and looks names up where its caller says.`,
          fix: `alter function ${name} set search_path = '';  -- and write names with their schemas in it`,
        },
        ...findings,
      ];
    });
}

function signatureOf({ schema, name, arguments: all }: Routine): string {
  return `${quotedName(schema, name)}(${all.map(({ type }) => type.sqlName).join(", ")})`;
}

/** Functions that clients do not call by themselves, but which policies, triggers and other functions call for them. */
export function internalRoutineFindings({ server }: DoctorFacts): DoctorFinding[] {
  return server.looseDefiners.map(({ signature, owner }) => ({
    kind: "advice",
    problem: `${signature} acts with the rights of ${owner}, and looks names up where its caller says.`,
    fix: `alter function ${signature} set search_path = '';  -- and write names with their schemas in it`,
  }));
}

/** Settings that are meant for development, or for nobody. */
export function settingFindings({ config, servesUsers }: DoctorFacts): DoctorFinding[] {
  const findings: DoctorFinding[] = config.schemas
    .filter((name) => INTERNAL_SCHEMAS.includes(name))
    .map((name) => ({
      kind: "danger",
      problem: `The schema ${name} is served.`,
      fix: `PGRST_DB_SCHEMAS without ${name}`,
    }));
  const isDeployed = config.databaseUrl !== null;
  if (isDeployed && config.nodeEnv !== "production") {
    const users = servesUsers ? `: /users is ${config.usersAccess}` : "";
    const what = `The service serves DATABASE_URL, and NODE_ENV does not say that this is production${users}.`;
    findings.push({ kind: "advice", problem: what, fix: "NODE_ENV=production" });
  } else if (isDeployed && servesUsers && config.usersAccess === "open") {
    findings.push({ kind: "danger", problem: "Anybody may change and delete users.", fix: "USERS_ACCESS=owner" });
  }
  if (isDeployed && config.publicUrl === null) {
    const what = "Links in mails and redirects name the address that the service listens on.";
    findings.push({ kind: "advice", problem: what, fix: "PUBLIC_URL=https://…" });
  }
  if (config.rateLimit === 0) {
    findings.push({ kind: "advice", problem: "Nothing limits how often somebody asks.", fix: "RATE_LIMIT=6000" });
  }
  if (!config.safeWrites) {
    const what = "An UPDATE or DELETE without a filter changes every row.";
    findings.push({ kind: "advice", problem: what, fix: "REST_SAFE_WRITES=true" });
  }
  return findings;
}
