export type * from "./access.ts";
export type * from "./changes.ts";
export type * from "./migration.ts";
export type * from "./people.ts";
export type * from "./running.ts";
export type * from "./session.ts";
export type * from "./sql.ts";
export type * from "./views.ts";
