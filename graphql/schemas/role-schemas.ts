import type { GraphQLSchema } from "grafast/graphql";
import { type Catalog, hasAnyColumnPrivilege, ownValuesOf, type Routine } from "#catalog";
import type { RolePrivileges } from "#plugins";
import { memoize, memoizePerObject } from "#runtime";
import { runStepwise, type Stepwise } from "#runtime/concurrency";
import {
  DocumentBudget,
  type DocumentReader,
  type DocumentReaderOptions,
  makeDocumentReader,
} from "../documents/documents.ts";
import { findHiddenElements, findWithheldFields, pruneSchema } from "./prune-schema.ts";

const routinesOf = memoizePerObject(({ schemas }: Catalog): ReadonlyMap<string, Routine> => {
  const routines = [...schemas.values()].flatMap((schema) => [...schema.routines.values()].flat());
  return new Map(routines.map((routine) => [String(routine.oid), routine]));
});

/** The schema of a role, and the documents checked against it. Operations and subscriptions keep the schema that they began with. */
export type ServedSchema = { readonly schema: GraphQLSchema; readonly documents: DocumentReader };

export type RoleSchemasOptions = Omit<DocumentReaderOptions, "memory"> & {
  /** The catalog that the schema was built with. */
  readonly catalog: Catalog;
  readonly anonRole: string;
  /** The limit for all schemas together; beyond it, all are dropped. */
  readonly maxTypes?: number;
};

/** The role of anonymous callers after sign-in. */
const SIGNED_IN_ROLE = "authenticated";
/** About 1 kB each. A database with 10,000 tables has 50,000. */
const MAX_TYPES = 100_000;

/**
 * The schema pruned for each role. Roles with the same visible elements share one. Anonymous callers see what they could use after
 * sign-in, so that errors tell them to sign in and tools need no credentials.
 */
export class RoleSchemas {
  readonly #options: RoleSchemasOptions;
  /** The schemas by role, in the order of first use. */
  readonly #byRole = new Map<string, ServedSchema | Promise<ServedSchema>>();
  readonly #byHiddenParts = new Map<string, ServedSchema>();
  readonly #numbers = new Map<object, number>();
  #memory = new DocumentBudget();
  #types = 0;

  constructor(options: RoleSchemasOptions) {
    this.#options = options;
  }

  get catalog(): Catalog {
    return this.#options.catalog;
  }

  /** The roles that used a schema first. */
  firstRoles(count: number): string[] {
    return [...this.#byRole.keys()].slice(0, count);
  }

  /**
   * Synchronous when cached or when the schema is small. A role that the service cannot switch to gets the anonymous schema; its
   * operations are refused when they run.
   */
  schemaOf(role: string): ServedSchema | Promise<ServedSchema> {
    const existing = this.#byRole.get(role);
    if (existing) return existing;
    const { catalog, anonRole } = this.#options;
    if (!catalog.roles.has(role) && role !== anonRole) return this.schemaOf(anonRole);
    const served = runStepwise(this.#makeSchema(privilegesByUse(catalog, role, anonRole)));
    this.#byRole.set(role, served);
    if (served instanceof Promise) {
      served.then(
        (made) => this.#byRole.set(role, made),
        () => this.#byRole.delete(role),
      );
    }
    return served;
  }

  *#makeSchema(privileges: PrivilegesByUse): Stepwise<ServedSchema> {
    const { schema, limits, hits, onInvalid } = this.#options;
    const hidden = yield* findHiddenElements(schema, privileges.hidden);
    const withheld = yield* findWithheldFields(schema, privileges.withheld);
    const ownFields = [...withheld].flatMap(([field, own]) => (own ? [field] : []));
    const key = [hidden, withheld.keys(), ownFields].map((parts) => this.#keyOf(parts)).join(";");
    const existing = this.#byHiddenParts.get(key);
    if (existing) return existing;
    const isWhole = hidden.size === 0 && withheld.size === 0;
    const own = isWhole ? schema : yield* pruneSchema(schema, { hidden, withheld });
    this.#makeRoom(Object.keys(own.getTypeMap()).length);
    const memory = this.#memory;
    const documents = makeDocumentReader({ schema: own, limits, memory, hits, onInvalid });
    const served = { schema: own, documents };
    this.#byHiddenParts.set(key, served);
    return served;
  }

  /** Returns equal keys for equal sets of elements. */
  #keyOf(elements: Iterable<object>): string {
    const numberOf = (part: object) => {
      const number = this.#numbers.get(part) ?? this.#numbers.size;
      this.#numbers.set(part, number);
      return number;
    };
    return Array.from(elements, numberOf)
      .sort((one, other) => one - other)
      .join();
  }

  #makeRoom(types: number): void {
    const { maxTypes = MAX_TYPES } = this.#options;
    if (this.#types + types > maxTypes) {
      this.#byRole.clear();
      this.#byHiddenParts.clear();
      this.#memory = new DocumentBudget();
      this.#types = 0;
    }
    this.#types += types;
  }
}

/** The schema with the elements that at least one of the roles may use. */
export async function pruneToPrivileges(
  schema: GraphQLSchema,
  catalog: Catalog,
  roles: readonly string[],
): Promise<GraphQLSchema> {
  const privileges = privilegesOf(catalog, roles);
  return runStepwise(
    (function* () {
      const hidden = yield* findHiddenElements(schema, privileges);
      const withheld = yield* findWithheldFields(schema, privileges);
      return yield* pruneSchema(schema, { hidden, withheld });
    })(),
  );
}

/** The privileges that decide which elements are hidden from a role, and those that decide which fields are withheld from it. */
export type PrivilegesByUse = { readonly hidden: RolePrivileges; readonly withheld: RolePrivileges };

export function privilegesByUse(catalog: Catalog, role: string, anonRole: string): PrivilegesByUse {
  const own = privilegesOf(catalog, [role]);
  return { hidden: role === anonRole ? privilegesOf(catalog, [role, SIGNED_IN_ROLE]) : own, withheld: own };
}

/** The union of the privileges of these roles, from the catalog. */
export function privilegesOf(catalog: Catalog, roles: readonly string[]): RolePrivileges {
  const rolesWithin = memoize((schemaName: string): readonly string[] => {
    const schema = catalog.schemas.get(schemaName);
    return schema ? roles.filter((role) => catalog.hasPrivilege(role, "usage", schema)) : [];
  });
  return {
    may(privilege, { schemaName, name }, column) {
      const table = catalog.findTable({ schema: schemaName, name });
      if (!table) return false;
      return rolesWithin(table.schema).some((role) =>
        column === undefined
          ? hasAnyColumnPrivilege(catalog, role, privilege, table)
          : catalog.hasPrivilege(role, privilege, table, column),
      );
    },
    mayExecute(oid) {
      const routine = routinesOf(catalog).get(oid);
      if (!routine) return false;
      return rolesWithin(routine.schema).some((role) => catalog.hasPrivilege(role, "execute", routine));
    },
    ownValueOf({ schemaName, name }, column) {
      const table = catalog.findTable({ schema: schemaName, name });
      const values = table ? roles.map((role) => ownValuesOf(catalog, role, table).get(column)) : [];
      return values.find((value) => value !== undefined) ?? null;
    },
  };
}
