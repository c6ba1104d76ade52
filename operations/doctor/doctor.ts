import { type CatalogTable, exposedSchemas, exposedTables, hasAnyColumnPrivilege, type Routine } from "#catalog";
import { isLoopbackHost } from "#config";
import { quotedName } from "#postgres/client";
import { VERBS } from "../inspect/policy-matrix.ts";
import { distributionFindings } from "./distribution-checks.ts";
import type { DoctorFacts, DoctorFinding } from "./facts.ts";
import {
  connectionFindings,
  hostFindings,
  replicaFindings,
  replicationFindings,
  serverFindings,
} from "./server-checks.ts";
import { administratorFindings, indexFindings, policyFindings, textBoundFindings } from "./table-checks.ts";

/** Internal schemas of the service and of Postgres, which must not be exposed. */
const INTERNAL_SCHEMAS = ["auth", "content_service", "pg_catalog", "information_schema"];

const CHECKS = [
  loginFindings,
  taskRoleFindings,
  roleFindings,
  connectionFindings,
  hostFindings,
  serverFindings,
  exposureFindings,
  routineFindings,
  internalRoutineFindings,
  replicaFindings,
  settingFindings,
  replicationFindings,
  textBoundFindings,
  administratorFindings,
  policyFindings,
  distributionFindings,
  indexFindings,
];
const SEVERITIES = ["danger", "advice", "slow"];

/** Runs all checks. Returns the problems, the most severe first. */
export function runChecks(facts: DoctorFacts): DoctorFinding[] {
  return sortBySeverity(CHECKS.flatMap((check) => check(facts)));
}

export function sortBySeverity(findings: readonly DoctorFinding[]): DoctorFinding[] {
  return findings.toSorted((a, b) => SEVERITIES.indexOf(a.kind) - SEVERITIES.indexOf(b.kind));
}

/** Checks the login role of requests, which should have no privileges before `set role`. */
function loginFindings({ login, catalog, config }: DoctorFacts): DoctorFinding[] {
  const findings: DoctorFinding[] = [];
  const name = quotedName(login.name);
  if (login.superuser) {
    findings.push({
      kind: "danger",
      problem: `Requests log in as ${name}, a superuser: no privilege and no policy restricts them.`,
      fix: "-- Use authenticator in DATABASE_URL, and the owner in OWNER_DATABASE_URL.",
    });
  } else if (login.bypassesRowSecurity) {
    const fix = `alter role ${name} nobypassrls;`;
    findings.push({ kind: "danger", problem: `Requests log in as ${name}, which bypasses row-level security.`, fix });
  } else if (login.ownsTables) {
    findings.push({
      kind: "danger",
      problem: `Requests log in as ${name}, which owns tables; owners bypass policies.`,
      fix: "-- Use a role that owns nothing in DATABASE_URL, and the owner in OWNER_DATABASE_URL.",
    });
  }
  if (login.inherits && !login.superuser) {
    const fix = `alter role ${name} noinherit;`;
    findings.push({
      kind: "advice",
      problem: `${name} inherits the privileges of all roles that it is a member of.`,
      fix,
    });
  }
  if (!catalog.roles.has(config.anonRole)) {
    findings.push({
      kind: "danger",
      problem: `${name} is not a member of ${quotedName(config.anonRole)}: requests without credentials fail.`,
      fix: `create role ${quotedName(config.anonRole)}; grant ${quotedName(config.anonRole)} to ${name};`,
    });
  }
  return findings;
}

/** Checks the roles of queued function calls. */
function taskRoleFindings({ login, server }: DoctorFacts): DoctorFinding[] {
  const name = quotedName(login.name);
  return server.unusableTaskRoles.map(({ role, tasks }) => ({
    kind: "danger",
    problem: `${tasks === 1 ? "1 queued function call" : `${tasks} queued function calls`} will fail: ${name} is not a member of ${quotedName(role)}.`,
    fix: `grant ${quotedName(role)} to ${name};`,
  }));
}

/** Checks the attributes of the roles of anonymous and signed-in callers. */
function roleFindings({ server, login }: DoctorFacts): DoctorFinding[] {
  const isDistributed = login.sessions.settingMode === "distributed";
  return server.clients.flatMap(({ name, superuser, bypassesRowSecurity, mayLogIn }): DoctorFinding[] => {
    const role = quotedName(name);
    if (superuser) {
      const fix = `alter role ${role} nosuperuser;`;
      return [
        {
          kind: "danger",
          problem: `Callers become ${role}, a superuser: no privilege and no policy restricts them.`,
          fix,
        },
      ];
    }
    if (bypassesRowSecurity) {
      const fix = `alter role ${role} nobypassrls;`;
      return [{ kind: "danger", problem: `Callers become ${role}, which bypasses row-level security.`, fix }];
    }
    if (isDistributed && !mayLogIn) {
      const problem = `Requests of ${role} fail on the workers of Citus, to which the coordinator connects as this role.`;
      return [
        { kind: "danger", problem, fix: `alter role ${role} login;  -- and let pg_hba.conf of the workers admit it` },
      ];
    }
    if (isDistributed || !mayLogIn) return [];
    const problem = `Clients can log in as ${role} directly, without the service.`;
    return [{ kind: "advice", problem, fix: `alter role ${role} nologin;` }];
  });
}

/** Finds tables and views whose rows no policy restricts. */
function exposureFindings(facts: DoctorFacts): DoctorFinding[] {
  return exposedTables(facts.catalog).flatMap((table) => {
    const verbs = grantedVerbs(table, facts);
    return verbs.length > 0 ? describeExposure(table, verbs.join("; "), facts) : [];
  });
}

function describeExposure(table: CatalogTable, exposure: string, { catalog, clients }: DoctorFacts): DoctorFinding[] {
  const name = quotedName(table.schema, table.name);
  switch (table.kind) {
    case "table":
    case "partitioned table":
      return tableFindings(table, name, exposure);
    case "view":
      return table.securityInvoker ? [] : [viewFinding(name, exposure, catalog.server.version)];
    case "materialized view":
    case "foreign table": {
      const problem = `Row-level security does not apply to ${name}, a ${table.kind}: every row is accessible (${exposure}).`;
      const roles = clients.map((role) => quotedName(role)).join(", ");
      return [{ kind: "danger", problem, fix: `revoke all on ${name} from public, ${roles};` }];
    }
  }
}

function tableFindings({ rowSecurity, policies }: CatalogTable, name: string, roles: string): DoctorFinding[] {
  if (rowSecurity === "off") {
    return [
      {
        kind: "danger",
        problem: `Every row of ${name} is accessible: row-level security is disabled (${roles}).`,
        fix: `alter table ${name} enable row level security;`,
      },
    ];
  }
  if (policies.length > 0) return [];
  return [
    {
      kind: "advice",
      problem: `No row of ${name} is visible: there are privileges (${roles}), but no policy.`,
      fix: `create policy select_all on ${name} for select using (true);  -- adapt the condition`,
    },
  ];
}

function viewFinding(name: string, roles: string, serverVersion: number): DoctorFinding {
  const fix =
    serverVersion >= 150_000
      ? `alter view ${name} set (security_invoker = true);`
      : `-- Postgres 14 has no security_invoker views: use a function in place of ${name}.`;
  return { kind: "danger", problem: `The view ${name} bypasses the policies of its tables (${roles}).`, fix };
}

/** `anon: select, insert` */
function grantedVerbs(table: CatalogTable, { catalog, clients }: DoctorFacts): string[] {
  return clients.flatMap((role) => {
    const verbs = VERBS.filter((verb) => hasAnyColumnPrivilege(catalog, role, verb, table));
    return verbs.length > 0 ? [`${role}: ${verbs.join(", ")}`] : [];
  });
}

/** Finds SECURITY DEFINER functions that clients may execute. */
function routineFindings({ catalog, clients }: DoctorFacts): DoctorFinding[] {
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
          problem: `${name} runs with the rights of ${routine.owner}, which bypasses policies, and ${callers} may execute it.`,
          fix: `alter function ${name} security invoker;  -- unless this is intended`,
        },
      ];
      if (routine.settings.has("search_path")) return findings;
      return [
        {
          kind: "danger",
          problem: `${name} runs with the rights of ${routine.owner} (security definer) without a fixed search_path.`,
          fix: `alter function ${name} set search_path = '';  -- and qualify the names in its body`,
        },
        ...findings,
      ];
    });
}

function signatureOf({ schema, name, arguments: all }: Routine): string {
  return `${quotedName(schema, name)}(${all.map(({ type }) => type.sqlName).join(", ")})`;
}

/** Finds SECURITY DEFINER functions that policies, triggers and other functions call. */
function internalRoutineFindings({ server }: DoctorFacts): DoctorFinding[] {
  return server.looseDefiners.map(({ signature, owner }) => ({
    kind: "advice",
    problem: `${signature} runs with the rights of ${owner} (security definer) without a fixed search_path.`,
    fix: `alter function ${signature} set search_path = '';  -- and qualify the names in its body`,
  }));
}

/** Finds settings that are unsafe, or only meant for development. */
function settingFindings({ config, servesUsers }: DoctorFacts): DoctorFinding[] {
  const findings: DoctorFinding[] = config.schemas
    .filter((name) => INTERNAL_SCHEMAS.includes(name))
    .map((name) => ({
      kind: "danger",
      problem: `The internal schema ${name} is exposed.`,
      fix: `PGRST_DB_SCHEMAS without ${name}`,
    }));
  const isDeployed = config.databaseUrl !== null;
  if (servesUsers && config.usersAccess === "open" && (isDeployed || !isLoopbackHost(config.host))) {
    const problem = "Everybody may read e-mail addresses and drafts, and change and delete users.";
    findings.push({ kind: "danger", problem, fix: "USERS_ACCESS=owner" });
  }
  if (isDeployed && config.nodeEnv !== "production") {
    const problem = "DATABASE_URL is set, but NODE_ENV is not production.";
    findings.push({ kind: "advice", problem, fix: "NODE_ENV=production" });
  }
  if (isDeployed && config.publicUrl === null) {
    const problem = "Links in emails and redirects contain the address that the service listens on.";
    findings.push({ kind: "advice", problem, fix: "PUBLIC_URL=https://…" });
  }
  if (isDeployed) findings.push(...studioFindings(config));
  if (config.rateLimit === 0) {
    findings.push({ kind: "advice", problem: "There is no rate limit.", fix: "RATE_LIMIT=6000" });
  }
  if (!config.safeWrites) {
    const problem = "An UPDATE or DELETE without a filter changes every row.";
    findings.push({ kind: "advice", problem, fix: "REST_SAFE_WRITES=true" });
  }
  return findings;
}

function studioFindings({ studio, studioSql }: DoctorFacts["config"]): DoctorFinding[] {
  const findings: DoctorFinding[] = [];
  if (studio === "open") {
    const problem = "Any browser on the machine of the service has the rights of an administrator in Studio.";
    findings.push({ kind: "advice", problem, fix: "STUDIO=administrators" });
  }
  if (studio !== "off" && studioSql) {
    const problem = "Administrators may run SQL as the owner of the database.";
    findings.push({ kind: "advice", problem, fix: "STUDIO_SQL=false" });
  }
  return findings;
}
