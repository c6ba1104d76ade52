import {
  type DocumentNode,
  GraphQLError,
  type GraphQLInputObjectType,
  type GraphQLInputType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isInputObjectType,
  isLeafType,
  isListType,
  isObjectType,
  isRequiredInputField,
  type OperationDefinitionNode,
  type SelectionSetNode,
  TypeInfo,
  typeFromAST,
  visit,
  visitWithTypeInfo,
} from "grafast/graphql";
import { isVisibleTo, withheldValueOf } from "#plugins";
import { memoize, memoizePerObject } from "#runtime";
import { DocumentBudget, type DocumentReader, makeDocumentReader } from "../documents/documents.ts";
import { GraphqlRefusal } from "../documents/graphql-refusal.ts";
import { type PrivilegesByUse, privilegesByUse, type RoleSchemasOptions, type ServedSchema } from "./role-schemas.ts";

type EarlySchemaOptions = Pick<RoleSchemasOptions, "schema" | "catalog" | "anonRole" | "limits">;

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

/** Other inputs are searched this deep for a field that makes them visible. */
const MAX_INPUT_DEPTH = 3;

/**
 * Decides about an operation on the whole schema what `findHiddenElements` would decide about the schema of the role, where that is
 * certain from the elements that the operation uses; else the answer is no.
 */
class EarlyVisibility {
  readonly #schema: GraphQLSchema;
  readonly #role: PrivilegesByUse;

  constructor(schema: GraphQLSchema, role: PrivilegesByUse) {
    this.#schema = schema;
    this.#role = role;
  }

  /** True if the role sees all elements that a valid document selects, and the document has no introspection. */
  readonly showsDocument = memoizePerObject((document: DocumentNode): boolean => {
    let isShown = true;
    const check = (holds: boolean | null | undefined) => {
      isShown &&= holds === true;
    };
    const types = new TypeInfo(this.#schema);
    visit(
      document,
      visitWithTypeInfo(types, {
        OperationDefinition: ({ operation }) => check(operation !== "subscription"),
        SelectionSet: (node) => check(isObjectType(types.getParentType()) && showsField(node)),
        Field: ({ name }) => {
          const field = types.getFieldDef();
          check(name.value === "__typename" || (field && !name.value.startsWith("__") && this.#isShownField(field)));
        },
        Argument: () => {
          const argument = types.getArgument();
          check(argument && isVisibleTo(argument, this.#role.hidden) && this.#isShownInput(argument.type));
        },
        ObjectField: ({ name }) => {
          const parent = types.getParentInputType();
          const type = parent && getNamedType(parent);
          check(isInputObjectType(type) && this.#isShownInputField(type, name.value));
        },
        VariableDefinition: (node) => {
          const type = typeFromAST(this.#schema, node.type as never) as GraphQLInputType | undefined;
          check(type && this.#isShownInput(type));
        },
      }),
    );
    return isShown;
  });

  /** True if the role sees the fields that the values of the variables have. */
  showsVariables(
    { variableDefinitions = [] }: OperationDefinitionNode,
    variables: Readonly<Record<string, unknown>>,
  ): boolean {
    return variableDefinitions.every(({ variable, type: node }) => {
      const type = typeFromAST(this.#schema, node as never) as GraphQLInputType;
      return this.#showsValue(variables[variable.name.value], type);
    });
  }

  #showsValue(value: unknown, wrapped: GraphQLInputType): boolean {
    if (typeof value !== "object" || value === null) return true;
    const type = getNullableType(wrapped);
    if (isListType(type)) {
      const items: readonly unknown[] = Array.isArray(value) ? value : [value];
      return items.every((item) => this.#showsValue(item, type.ofType));
    }
    if (!isInputObjectType(type)) return true;
    const fields = type.getFields();
    return Object.entries(value).every(
      ([name, item]) => this.#isShownInputField(type, name) && this.#showsValue(item, fields[name]!.type),
    );
  }

  #isShownField(field: Parameters<typeof withheldValueOf>[0]): boolean {
    return isVisibleTo(field, this.#role.hidden) && withheldValueOf(field, this.#role.withheld) === undefined;
  }

  #isShownInputField(type: GraphQLInputObjectType, name: string): boolean {
    const field = type.getFields()[name];
    return field !== undefined && isVisibleTo(field, this.#role.hidden) && this.#isShownInput(field.type);
  }

  /** True if the type has a field that the role sees, and the role sees the types of all required fields. */
  #isShownInput(wrapped: GraphQLInputType, depth = 0): boolean {
    const type = getNamedType(wrapped);
    if (isLeafType(type)) return true;
    if (depth > MAX_INPUT_DEPTH) return false;
    const fields = Object.values(type.getFields());
    const isShown = (field: (typeof fields)[number]) => this.#isShownInput(field.type, depth + 1);
    return (
      fields.filter(isRequiredInputField).every(isShown) &&
      fields.some((field) => isVisibleTo(field, this.#role.hidden) && isShown(field))
    );
  }
}

/** True if a field other than `__typename` is selected: then the type is visible if that field is. */
function showsField({ selections }: SelectionSetNode): boolean {
  return selections.some((selection) => selection.kind !== "Field" || selection.name.value !== "__typename");
}
