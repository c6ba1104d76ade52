import type { Facts } from "./facts.ts";
import type { Finding } from "./finding.ts";

/** What lies between the service and Postgres. */
export function connectionFindings({ config, login, stream }: Facts): Finding[] {
  const findings: Finding[] = [];
  if (stream.isPooled) {
    findings.push({
      kind: "danger",
      what: "OWNER_DATABASE_URL goes through a pooler, which passes on neither notifications nor the log nor locks.",
      fix: "OWNER_DATABASE_URL of Postgres itself",
    });
  }
  if (login.isPooled && config.preparedStatements) {
    findings.push({
      kind: "advice",
      what: "DATABASE_URL goes through a pooler: statements stay prepared only where it is PgBouncer 1.21 or newer.",
      fix: "max_prepared_statements = 250 in pgbouncer.ini, or DB_PREPARED_STATEMENTS=false",
    });
  }
  if (login.isInTheOpen) {
    findings.push({
      kind: "danger",
      what: "Passwords and rows travel to Postgres unencrypted, over a network.",
      fix: "?sslmode=verify-full&sslrootcert=… in DATABASE_URL and OWNER_DATABASE_URL",
    });
  }
  return findings;
}
