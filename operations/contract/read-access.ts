import {
  applicablePolicies,
  type Catalog,
  type CatalogTable,
  exposedTables,
  type Policy,
  policyCondition,
} from "#catalog";
import {
  exposedRoutines,
  functionSignature,
  mayExecute,
  mayUseSchema,
  qualifiedName,
  supports,
  VERBS,
  type Verb,
} from "./exposed-objects.ts";

/** The policy matrix: the privileges and policies of each role. */
export type AccessMatrix = {
  /** All columns of each relation, regardless of privileges. */
  readonly relations: Readonly<Record<string, readonly string[]>>;
  /** The signatures of all functions, regardless of privileges. */
  readonly functions: readonly string[];
  readonly roles: Readonly<Record<string, RoleAccess>>;
};

/** The privileges and policies of one role. */
export type RoleAccess = {
  readonly relations: Readonly<Record<string, Partial<Record<Verb, VerbAccess>>>>;
  /** The signatures of the functions that the role may execute. */
  readonly functions: readonly string[];
};

export type VerbAccess = {
  /** The columns with the privilege; empty for `delete`. */
  readonly columns: readonly string[];
  readonly rows: RowAccess;
};

/** All rows, or those that one of the permissive and each of the restrictive conditions permits. */
export type RowAccess = "all" | { readonly permissive: readonly string[]; readonly restrictive: readonly string[] };

/** Privileges and policies of each role on the exposed tables and functions, from the catalogue. */
export function readAccess(catalog: Catalog, roles: readonly string[]): AccessMatrix {
  const tables = exposedTables(catalog);
  const routines = exposedRoutines(catalog);
  const readRole = (role: string): RoleAccess => {
    const relations = tables
      .filter((table) => mayUseSchema(catalog, role, table))
      .map((table) => [qualifiedName(table), readRelationAccess(catalog, table, role)] as const);
    const functions = routines.filter((routine) => mayExecute(catalog, role, routine)).map(functionSignature);
    return { relations: Object.fromEntries(relations), functions };
  };
  return {
    relations: Object.fromEntries(tables.map((table) => [qualifiedName(table), [...table.columns.keys()]])),
    functions: routines.map(functionSignature),
    roles: Object.fromEntries(roles.map((role) => [role, readRole(role)])),
  };
}

function readRelationAccess(catalog: Catalog, table: CatalogTable, role: string): Partial<Record<Verb, VerbAccess>> {
  const access: Partial<Record<Verb, VerbAccess>> = {};
  for (const verb of VERBS.filter((each) => supports(table, each))) {
    const isPerColumn = verb !== "delete";
    const columns = isPerColumn
      ? [...table.columns.keys()].filter((column) => catalog.hasPrivilege(role, verb, table, column))
      : [];
    if (columns.length === 0 && !catalog.hasPrivilege(role, verb, table)) continue;
    access[verb] = { columns, rows: readRowAccess(catalog, table, role, verb) };
  }
  return access;
}

function readRowAccess(catalog: Catalog, table: CatalogTable, role: string, verb: Verb): RowAccess {
  const policies = applicablePolicies(catalog, table, role, verb);
  if (policies === null) return "all";
  const conditionsOf = (isPermissive: boolean) =>
    [
      ...new Set(
        policies.filter(({ permissive }) => permissive === isPermissive).map((policy) => conditionOf(policy, verb)),
      ),
    ].sort();
  const permissive = conditionsOf(true);
  const restrictive = conditionsOf(false).filter((condition) => condition !== ALWAYS);
  return permissive.includes(ALWAYS) && restrictive.length === 0 ? "all" : { permissive, restrictive };
}

const ALWAYS = "true";

/** Returns the condition that counts for the command; an update is checked against the row before and after. */
function conditionOf(policy: Policy, verb: Verb): string {
  const using = policyCondition(policy);
  const check = policy.check ?? using;
  if (verb === "insert") return check;
  return verb === "update" && check !== using ? `${using}, and after the update ${check}` : using;
}
