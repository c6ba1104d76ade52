import { quotedName } from "../../quoted-name.ts";
import type { Facts } from "./facts.ts";
import type { Finding } from "./finding.ts";

/** What a role has that strangers, or whoever signs in, become. */
export function roleFindings({ server }: Facts): Finding[] {
  return server.clients.flatMap(({ name, superuser, bypassesRowSecurity, mayLogIn }): Finding[] => {
    const role = quotedName(name);
    if (superuser) {
      const fix = `alter role ${role} nosuperuser;`;
      return [{ kind: "danger", what: `Callers become ${role}, a superuser, whom nothing binds.`, fix }];
    }
    if (bypassesRowSecurity) {
      const fix = `alter role ${role} nobypassrls;`;
      return [{ kind: "danger", what: `Callers become ${role}, which no policy binds.`, fix }];
    }
    if (!mayLogIn) return [];
    const what = `Somebody may log in as ${role}, past the service: callers need no login.`;
    return [{ kind: "advice", what, fix: `alter role ${role} nologin;` }];
  });
}
