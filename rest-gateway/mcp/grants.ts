import type { Caller } from "#accounts/identity";
import type { QualifiedName } from "#catalog";
import type { Config } from "#config";

/** The grants of a caller by the settings and by the scopes of its token. The database decides about the rest. */
export type McpGrants = {
  /** Callers with equal keys have the same grants. */
  readonly key: string;
  /** True if a tool may change anything. */
  readonly allowsChanges: boolean;
  mayRead(table: QualifiedName): boolean;
  mayWrite(table: QualifiedName): boolean;
  /** Returns true if functions may be called. A function can read or write any table, so a scope of one table is not enough. */
  mayCall(isReadOnly: boolean): boolean;
};

/** The scope of a table: `read:public.films`, `write:films`. */
const TABLE_SCOPE = /^(read|write):(.+)$/;

export function grantsOf(
  { claims }: Pick<Caller, "claims">,
  { mcp: mode, schemas }: Pick<Config, "mcp" | "schemas">,
): McpGrants {
  const scopes = claims.oauth_grant_id === undefined ? null : scopesOf(claims.scope);
  const writes = mode === "write";
  if (scopes === null) {
    const mayCall = (isReadOnly: boolean) => isReadOnly || writes;
    return { key: mode, allowsChanges: writes, mayRead: () => true, mayWrite: () => writes, mayCall };
  }
  const has = (verb: "read" | "write", table?: QualifiedName) =>
    scopes.includes(verb) || (table !== undefined && namesOf(table).some((name) => scopes.includes(`${verb}:${name}`)));
  // Tables of the first schema need no schema, as in the table interface.
  const namesOf = ({ schema, name }: QualifiedName) => [`${schema}.${name}`, ...(schema === schemas[0] ? [name] : [])];
  return {
    key: `${mode} ${scopes.join(" ")}`,
    allowsChanges: writes && scopes.some((name) => name.startsWith("write")),
    mayRead: (table) => has("read", table) || has("write", table),
    mayWrite: (table) => writes && has("write", table),
    mayCall: (isReadOnly) => (isReadOnly ? has("read") || has("write") : writes && has("write")),
  };
}

function scopesOf(scope: unknown): readonly string[] {
  const names = typeof scope === "string" ? scope.split(" ") : [];
  return names.filter((name) => name === "read" || name === "write" || TABLE_SCOPE.test(name)).sort();
}
