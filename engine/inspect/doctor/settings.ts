import type { Facts } from "./facts.ts";
import type { Finding } from "./finding.ts";

/** Schemas of ours and of Postgres that clients must never be served. */
const CLOSED = ["auth", "private", "pg_catalog", "information_schema"];

/** Settings that are meant for development, or for nobody. */
export function settingFindings({ config, servesUsers }: Facts): Finding[] {
  const findings: Finding[] = config.schemas
    .filter((name) => CLOSED.includes(name))
    .map((name) => ({
      kind: "danger",
      what: `The schema ${name} is served.`,
      fix: `PGRST_DB_SCHEMAS without ${name}`,
    }));
  const isDeployed = config.databaseUrl !== null;
  if (isDeployed && config.nodeEnv !== "production") {
    const users = servesUsers ? `: /users is ${config.usersAccess}` : "";
    const what = `The service serves DATABASE_URL, and NODE_ENV does not say that this is production${users}.`;
    findings.push({ kind: "advice", what, fix: "NODE_ENV=production" });
  } else if (isDeployed && servesUsers && config.usersAccess === "open") {
    findings.push({ kind: "danger", what: "Anybody may change and delete users.", fix: "USERS_ACCESS=owner" });
  }
  if (isDeployed && config.publicUrl === null) {
    const what = "Links in mails and redirects name the address that the service listens on.";
    findings.push({ kind: "advice", what, fix: "PUBLIC_URL=https://…" });
  }
  if (config.rateLimit === 0) {
    findings.push({ kind: "advice", what: "Nothing limits how often somebody asks.", fix: "RATE_LIMIT=6000" });
  }
  if (!config.safeWrites) {
    const what = "An UPDATE or DELETE without a filter changes every row.";
    findings.push({ kind: "advice", what, fix: "REST_SAFE_WRITES=true" });
  }
  return findings;
}
