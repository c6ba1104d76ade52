import type { GraphQLSchema } from "postgraphile/graphql";
import { memoize, memoizePerObject } from "../../engine/cache/memoize.ts";
import type { CacheHits } from "../../engine/cache/recent-map.ts";
import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { Routine } from "../../engine/catalog/routines.ts";
import type { CatalogTable } from "../../engine/catalog/tables.ts";
import { runStepwise, type Stepwise } from "../../engine/concurrency/stepwise.ts";
import type { RolePrivileges, TableAction } from "../VisibilityPlugin.ts";
import type { DocumentLimits } from "./document-size.ts";
import { type DocumentReader, makeDocumentReader, PlanBudget } from "./documents.ts";
import { findHiddenElements, type HiddenElements, pruneSchema } from "./prune-schema.ts";
import type { ExecutableSchema } from "./stepwise-build.ts";

const routinesOf = memoizePerObject(({ schemas }: Catalog): ReadonlyMap<string, Routine> => {
  const routines = [...schemas.values()].flatMap((schema) => [...schema.routines.values()].flat());
  return new Map(routines.map((routine) => [String(routine.oid), routine]));
});

/** The schema of a role, and what was read against it. An operation ends with the one that it began with, a subscription too. */
export type ServedSchema = ExecutableSchema & { readonly documents: DocumentReader };

export type RoleSchemasOptions = ExecutableSchema & {
  /** Of the time when the schema was made. */
  readonly catalog: Catalog;
  readonly anonRole: string;
  readonly limits: DocumentLimits;
  /** Of documents that were read before. */
  readonly hits?: CacheHits | undefined;
  /** Called when a document does not fit the schema. */
  readonly onInvalid?: (() => void) | undefined;
  /** Of all schemas together; beyond them all are forgotten. */
  readonly maxTypes?: number;
};

/** What an anonymous caller becomes by signing in. */
const SIGNED_IN_ROLE = "authenticated";
/** About 1 kB each. A database of 10,000 tables has 50,000. */
const MAX_TYPES = 100_000;
/** Of one operation: `@skip` and `@include` make a plan of their own for each combination of their variables. */
const MAX_PLANS = 4;

/**
 * What is left of one schema for each role. Roles that may use the same things share theirs. Anonymous callers see what they could
 * use after signing in, so that they are told to do so, and tools need no credentials.
 */
export class RoleSchemas {
  readonly #options: RoleSchemasOptions;
  /** In the order in which they were first asked for. */
  readonly #byRole = new Map<string, ServedSchema | Promise<ServedSchema>>();
  readonly #byHiddenParts = new Map<string, ServedSchema>();
  readonly #numbers = new Map<object, number>();
  #memory = new PlanBudget();
  #types = 0;

  constructor(options: RoleSchemasOptions) {
    this.#options = options;
  }

  get catalog(): Catalog {
    return this.#options.catalog;
  }

  /** Those that were asked for first. */
  firstRoles(count: number): string[] {
    return [...this.#byRole.keys()].slice(0, count);
  }

  /**
   * At once, where it is known or the whole schema is small. A role that the service cannot become gets that of anonymous callers;
   * its operations are refused when they run.
   */
  schemaOf(role: string): ServedSchema | Promise<ServedSchema> {
    const known = this.#byRole.get(role);
    if (known) return known;
    const { catalog, anonRole } = this.#options;
    if (!catalog.roles.has(role) && role !== anonRole) return this.schemaOf(anonRole);
    const served = runStepwise(this.makeSchema(role === anonRole ? [role, SIGNED_IN_ROLE] : [role]));
    this.#byRole.set(role, served);
    if (served instanceof Promise) {
      served.then(
        (made) => this.#byRole.set(role, made),
        () => this.#byRole.delete(role),
      );
    }
    return served;
  }

  *makeSchema(roles: readonly string[]): Stepwise<ServedSchema> {
    const { schema, resolvedPreset, catalog, limits, hits, onInvalid } = this.#options;
    const hidden = yield* findHiddenElements(schema, privilegesOf(catalog, roles));
    const key = this.keyOf(hidden);
    const known = this.#byHiddenParts.get(key);
    if (known) return known;
    const own = withPlanCache(hidden.size === 0 ? schema : yield* pruneSchema(schema, hidden));
    this.makeRoom(Object.keys(own.getTypeMap()).length);
    const memory = this.#memory;
    memory.onFull(() => forgetPlans(own));
    const documents = makeDocumentReader({ schema: own, limits, memory, hits, onInvalid });
    const served = { schema: own, resolvedPreset, documents };
    this.#byHiddenParts.set(key, served);
    return served;
  }

  /** The same for the same parts. */
  keyOf(hidden: HiddenElements): string {
    const numberOf = (part: object) => {
      const number = this.#numbers.get(part) ?? this.#numbers.size;
      this.#numbers.set(part, number);
      return number;
    };
    return Array.from(hidden, numberOf)
      .sort((one, other) => one - other)
      .join();
  }

  makeRoom(types: number): void {
    const { maxTypes = MAX_TYPES } = this.#options;
    if (this.#types + types > maxTypes) {
      this.#byRole.clear();
      this.#byHiddenParts.clear();
      this.#memory = new PlanBudget();
      this.#types = 0;
    }
    this.#types += types;
  }
}

/** Grafast keeps the plans of a schema with it, under symbols of its own. */
function withPlanCache(schema: GraphQLSchema): GraphQLSchema {
  const shared = Object.fromEntries(Object.entries(schema.extensions.grafast ?? {}));
  schema.extensions = {
    ...schema.extensions,
    grafast: { ...shared, operationOperationPlansCacheMaxLength: MAX_PLANS },
  };
  return schema;
}

/** It counts its plans and does not weigh them: 500 large ones would be gigabytes. */
function forgetPlans({ extensions }: GraphQLSchema): void {
  const kept = extensions.grafast as Record<symbol, unknown>;
  for (const symbol of Object.getOwnPropertySymbols(kept)) delete kept[symbol];
}

/** What the catalogue says that at least one of these roles may do. */
export function privilegesOf(catalog: Catalog, roles: readonly string[]): RolePrivileges {
  const rolesWithin = memoize((schemaName: string): readonly string[] => {
    const schema = catalog.schemas.get(schemaName);
    return schema ? roles.filter((role) => catalog.hasPrivilege(role, "usage", schema)) : [];
  });
  const mayOn = (privilege: TableAction, table: CatalogTable, column?: string) =>
    rolesWithin(table.schema).some((role) => catalog.hasPrivilege(role, privilege, table, column));
  return {
    may(privilege, { schemaName, name }, column) {
      const table = catalog.findTable({ schema: schemaName, name });
      if (!table) return false;
      if (column !== undefined) return mayOn(privilege, table, column);
      return mayOn(privilege, table) || table.columns.keys().some((any) => mayOn(privilege, table, any));
    },
    mayExecute(oid) {
      const routine = routinesOf(catalog).get(oid);
      if (!routine) return false;
      return rolesWithin(routine.schema).some((role) => catalog.hasPrivilege(role, "execute", routine));
    },
  };
}
