import {
  type DocumentNode,
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
import { memoizePerObject } from "#runtime";
import type { PrivilegesByUse } from "./role-schemas.ts";

/** Other inputs are searched this deep for a field that makes them visible. */
const MAX_INPUT_DEPTH = 3;

/**
 * Decides about an operation on the whole schema what `findHiddenElements` would decide about the schema of the role, where that is
 * certain from the elements that the operation uses; else the answer is no.
 */
export class EarlyVisibility {
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
          check(argument && this.#isPermitted(argument) && this.#isShownInput(argument.type));
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

  #isPermitted(element: { readonly extensions?: object | null | undefined }): boolean {
    return isVisibleTo(element, this.#role.hidden);
  }

  #isShownField(field: Parameters<typeof withheldValueOf>[0]): boolean {
    return this.#isPermitted(field) && withheldValueOf(field, this.#role.withheld) === undefined;
  }

  #isShownInputField(type: GraphQLInputObjectType, name: string): boolean {
    const field = type.getFields()[name];
    return field !== undefined && this.#isPermitted(field) && this.#isShownInput(field.type);
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
      fields.some((field) => this.#isPermitted(field) && isShown(field))
    );
  }
}

/** True if a field other than `__typename` is selected: then the type is visible if that field is. */
function showsField({ selections }: SelectionSetNode): boolean {
  return selections.some((selection) => selection.kind !== "Field" || selection.name.value !== "__typename");
}
