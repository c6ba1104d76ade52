export type { CallerDatabase } from "./operations/caller-database.ts";
export { makePgService, makeWithPgClient } from "./operations/pg-client.ts";
export { buildServableSchema } from "./schemas/resilient-build.ts";
export { pruneToPrivileges } from "./schemas/role-schemas.ts";
export type { BuiltSchema } from "./schemas/stepwise-build.ts";
