import type { GraphQLSchema } from "postgraphile/graphql";
import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { Hits } from "../../engine/recent-map.ts";
import { runStepwise, type Stepwise } from "../../engine/stepwise.ts";
import { type DocumentReader, makeDocumentReader } from "./documents.ts";
import { findHiddenParts, type HiddenParts } from "./hidden-parts.ts";
import type { Limits } from "./limits.ts";
import type { MadeSchema } from "./make-schema.ts";
import { PlanMemory } from "./plan-memory.ts";
import { pruneSchema } from "./prune-schema.ts";
import { privilegesOf } from "./role-privileges.ts";

/** The schema of a role, and what was read against it. An operation ends with the one that it began with, a subscription too. */
export type ServedSchema = MadeSchema & { readonly documents: DocumentReader };

export type RoleSchemasOptions = MadeSchema & {
  /** Of the time when the schema was made. */
  readonly catalog: Catalog;
  readonly anonRole: string;
  readonly limits: Limits;
  /** Of documents that were read before. */
  readonly hits?: Hits | undefined;
  /** Called when a document does not fit the schema. */
  readonly onInvalid?: (() => void) | undefined;
  /** Of all schemas together; beyond them all are forgotten. */
  readonly mostTypes?: number;
};

/** What an anonymous caller becomes by signing in. */
const SIGNED_IN = "authenticated";
/** About 1 kB each. A database of 10,000 tables has 50,000. */
const MOST_TYPES = 100_000;
/** Of one operation: `@skip` and `@include` make a plan of their own for each combination of their variables. */
const MOST_PLANS = 4;

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
  #memory = new PlanMemory();
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
  of(role: string): ServedSchema | Promise<ServedSchema> {
    const known = this.#byRole.get(role);
    if (known) return known;
    const { catalog, anonRole } = this.#options;
    if (!catalog.roles.has(role) && role !== anonRole) return this.of(anonRole);
    const served = runStepwise(this.#make(role === anonRole ? [role, SIGNED_IN] : [role]));
    this.#byRole.set(role, served);
    if (served instanceof Promise) {
      served.then(
        (made) => this.#byRole.set(role, made),
        () => this.#byRole.delete(role),
      );
    }
    return served;
  }

  *#make(roles: readonly string[]): Stepwise<ServedSchema> {
    const { schema, resolvedPreset, catalog, limits, hits, onInvalid } = this.#options;
    const hidden = yield* findHiddenParts(schema, privilegesOf(catalog, roles));
    const key = this.#numbersOf(hidden);
    const known = this.#byHiddenParts.get(key);
    if (known) return known;
    const own = withPlans(hidden.size === 0 ? schema : yield* pruneSchema(schema, hidden));
    this.#admit(Object.keys(own.getTypeMap()).length);
    const memory = this.#memory;
    memory.onFull(() => forgetPlans(own));
    const documents = makeDocumentReader({ schema: own, limits, memory, hits, onInvalid });
    const served = { schema: own, resolvedPreset, documents };
    this.#byHiddenParts.set(key, served);
    return served;
  }

  /** The same for the same parts. */
  #numbersOf(hidden: HiddenParts): string {
    const numberOf = (part: object) => {
      const number = this.#numbers.get(part) ?? this.#numbers.size;
      this.#numbers.set(part, number);
      return number;
    };
    return Array.from(hidden, numberOf)
      .sort((one, other) => one - other)
      .join();
  }

  #admit(types: number): void {
    const { mostTypes = MOST_TYPES } = this.#options;
    if (this.#types + types > mostTypes) {
      this.#byRole.clear();
      this.#byHiddenParts.clear();
      this.#memory = new PlanMemory();
      this.#types = 0;
    }
    this.#types += types;
  }
}

/** Grafast keeps the plans of a schema with it, under symbols of its own. */
function withPlans(schema: GraphQLSchema): GraphQLSchema {
  const shared = Object.fromEntries(Object.entries(schema.extensions.grafast ?? {}));
  schema.extensions = {
    ...schema.extensions,
    grafast: { ...shared, operationOperationPlansCacheMaxLength: MOST_PLANS },
  };
  return schema;
}

/** It counts its plans and does not weigh them: 500 large ones would be gigabytes. */
function forgetPlans({ extensions }: GraphQLSchema): void {
  const kept = extensions.grafast as Record<symbol, unknown>;
  for (const symbol of Object.getOwnPropertySymbols(kept)) delete kept[symbol];
}
