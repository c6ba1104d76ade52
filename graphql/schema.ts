export { NotCompiled } from "./compile/not-compiled.ts";
export { OperationPlans } from "./compile/operation-plans.ts";
export { makePgService } from "./schemas/pg-service.ts";
export { buildServableSchema } from "./schemas/resilient-build.ts";
export { pruneToPrivileges } from "./schemas/role-schemas.ts";
export type { BuiltSchema } from "./schemas/stepwise-build.ts";
