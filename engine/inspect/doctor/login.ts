import { quotedName } from "../../quoted-name.ts";
import type { Facts } from "./facts.ts";
import type { Finding } from "./finding.ts";

/** The login that requests use: it should be nobody until it becomes the caller's role. */
export function loginFindings({ login, catalog, config }: Facts): Finding[] {
  const findings: Finding[] = [];
  const name = quotedName(login.name);
  if (login.superuser) {
    findings.push({
      kind: "danger",
      what: `Requests log in as ${name}, a superuser: a mistake here is a mistake without bounds.`,
      fix: "-- Let DATABASE_URL name authenticator, and OWNER_DATABASE_URL the owner.",
    });
  } else if (login.bypassesRowSecurity) {
    const fix = `alter role ${name} nobypassrls;`;
    findings.push({ kind: "danger", what: `No policy binds ${name}, which requests log in as.`, fix });
  } else if (login.ownsTables) {
    findings.push({
      kind: "danger",
      what: `Requests log in as ${name}, which owns tables, and policies do not bind owners.`,
      fix: "-- Let DATABASE_URL name a role that owns nothing, and OWNER_DATABASE_URL the owner.",
    });
  }
  if (login.inherits && !login.superuser) {
    const fix = `alter role ${name} noinherit;`;
    findings.push({ kind: "advice", what: `${name} has the rights of all roles that it can become, at once.`, fix });
  }
  if (!catalog.roles.has(config.anonRole)) {
    findings.push({
      kind: "danger",
      what: `${name} cannot become ${quotedName(config.anonRole)}: callers without credentials get errors.`,
      fix: `create role ${quotedName(config.anonRole)}; grant ${quotedName(config.anonRole)} to ${name};`,
    });
  }
  return findings;
}
