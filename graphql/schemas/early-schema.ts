import { GraphQLError, type GraphQLSchema } from "grafast/graphql";
import type { Catalog } from "#catalog";
import { memoize } from "#runtime";
import type { DocumentLimits } from "../documents/document-size.ts";
import { DocumentBudget, type DocumentReader, makeDocumentReader } from "../documents/documents.ts";
import { GraphqlRefusal } from "../documents/graphql-refusal.ts";
import { EarlyVisibility } from "./early-visibility.ts";
import { privilegesByUse, type ServedSchema } from "./role-schemas.ts";

type EarlySchemaOptions = {
  readonly schema: GraphQLSchema;
  readonly catalog: Catalog;
  readonly anonRole: string;
  readonly limits: DocumentLimits;
};

/**
 * The schema of a build that still runs, for operations that the schema before it refuses. It answers only what the schema of the
 * role will answer in the same way: all others wait for that.
 */
export class EarlySchema {
  readonly #options: EarlySchemaOptions;
  readonly #documents: DocumentReader;

  constructor(options: EarlySchemaOptions) {
    this.#options = options;
    const { schema, limits } = options;
    this.#documents = makeDocumentReader({ schema, limits, memory: new DocumentBudget() });
  }

  readonly schemaOf = memoize((role: string): ServedSchema => {
    const { schema, catalog, anonRole } = this.#options;
    const known = catalog.roles.has(role) ? role : anonRole;
    const visibility = new EarlyVisibility(schema, privilegesByUse(catalog, known, anonRole));
    const documents = this.#documents;
    return {
      schema,
      documents: {
        *read(text) {
          const checked = yield* documents.read(text);
          if (!visibility.showsDocument(checked.document)) throw new UndecidedOperation();
          return {
            ...checked,
            checkVariables(operation, variables) {
              checked.checkVariables(operation, variables);
              if (!visibility.showsVariables(operation, variables)) throw new UndecidedOperation();
            },
          };
        },
      },
    };
  });
}

/** Never sent: the schema of the role decides, when it is built. */
export class UndecidedOperation extends GraphqlRefusal {
  constructor() {
    super([new GraphQLError("The schema of the role decides")]);
  }
}
