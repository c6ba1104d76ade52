export type TablePrivilege =
  | "select"
  | "insert"
  | "update"
  | "delete"
  | "truncate"
  | "references"
  | "trigger"
  | "maintain";
export type SchemaPrivilege = "usage" | "create";
export type RoutinePrivilege = "execute";
export type Privilege = TablePrivilege | SchemaPrivilege | RoutinePrivilege;

/** The privileges by grantee; `public` is PUBLIC (no role can have that name). */
export type Grants = ReadonlyMap<string, ReadonlySet<Privilege>>;
