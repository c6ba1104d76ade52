import { existsSync } from "node:fs";
import { describe } from "vitest";
import { testThrough } from "./acceptance.ts";
import { PGBOUNCER, startPgBouncer } from "./pgbouncer.ts";

// Debian's package, which .ci/run installs.
describe.runIf(existsSync(PGBOUNCER))("requests", () => {
  // Few sessions are sure to be shared.
  const sessions = 4;
  testThrough("PgBouncer in transaction mode", {
    start: (postgres) => startPgBouncer(postgres, { poolSize: sessions }),
    sessions,
  });
});
