export { type CallerDatabase, makePgService, makeWithPgClient } from "./server/pg-client.ts";
export { buildServableSchema } from "./server/resilient-build.ts";
export { pruneToPrivileges } from "./server/role-schemas.ts";
export type { BuiltSchema } from "./server/stepwise-build.ts";
