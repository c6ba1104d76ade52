import {
  type DocumentNode,
  type FragmentDefinitionNode,
  type FragmentSpreadNode,
  type GraphQLInputType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isInputObjectType,
  isListType,
  Kind,
  type ObjectFieldNode,
  type OperationDefinitionNode,
  parseType,
  print,
  stripIgnoredCharacters,
  TypeInfo,
  typeFromAST,
  type ValueNode,
  type VariableDefinitionNode,
  visit,
  visitWithTypeInfo,
} from "grafast/graphql";
import type { RequestOutline, RequestRecorder } from "#http/observability";
import { findNamedRelations } from "#postgres/database";
import { isJsonObject, type JsonObject } from "#runtime/json";
import type { BoundOperation } from "../compile/operation-plans.ts";
import { fragmentsOf } from "../documents/document-size.ts";
import type { PlannedOperation } from "./operation.ts";

/** Counts an operation that has run. The statements of a compiled one belong to one combination of given variables. */
export function recordOperation(
  recorder: RequestRecorder,
  { selected, args, served, requestInfo }: PlannedOperation,
  bound: BoundOperation | null,
): void {
  const { role } = requestInfo.authentication.caller;
  recorder.count("graphql", bound?.plan ?? selected, role, (): RequestOutline => {
    const operation = outlineOperation(args.document, selected, served.schema, args.variableValues ?? {});
    const texts = bound?.steps.map(({ statement }) => statement.text) ?? [];
    const relations = [...new Set(texts.flatMap(findNamedRelations))].map((quoted) => {
      const name = quoted.slice(1, -1).replace('"."', ".").replaceAll('""', '"');
      return [name, { select: [], insert: [], update: [], deletes: false }] as const;
    });
    const request = `${selected.operation} ${rootFieldsOf(selected)}`;
    return { interface: "graphql", role, request, operation, relations: Object.fromEntries(relations), functions: {} };
  });
}

function rootFieldsOf({ selectionSet }: OperationDefinitionNode): string {
  const names = selectionSet.selections.map((selection) =>
    selection.kind === Kind.FIELD ? selection.name.value : "…",
  );
  return `{ ${names.join(" ")} }`;
}

/**
 * The text of an operation with a variable of its type in place of each literal, and without aliases and names of its own. Input objects
 * of variables are written in the text, since their fields are names too. Values of enums are data.
 */
export function outlineOperation(
  document: DocumentNode,
  operation: OperationDefinitionNode,
  schema: GraphQLSchema,
  variables: JsonObject,
): string {
  const outline = new OperationOutline(schema, operation, variables);
  return outline.print(document);
}

class OperationOutline {
  readonly #schema: GraphQLSchema;
  readonly #operation: OperationDefinitionNode;
  readonly #variables: JsonObject;
  readonly #types = new Map<string, string>();

  constructor(schema: GraphQLSchema, operation: OperationDefinitionNode, variables: JsonObject) {
    this.#schema = schema;
    this.#operation = operation;
    this.#variables = variables;
  }

  print(document: DocumentNode): string {
    const fragments = usedFragments(document, this.#operation);
    const names = new Map(fragments.map(({ name }, index) => [name.value, `f${index + 1}`]));
    const rename = <Node extends FragmentDefinitionNode | FragmentSpreadNode>(node: Node): Node => ({
      ...node,
      name: { ...node.name, value: names.get(node.name.value)! },
    });
    const typeInfo = new TypeInfo(this.#schema);
    const definitions = [this.#operation, ...fragments].map((definition) =>
      visit(
        definition,
        visitWithTypeInfo(typeInfo, {
          Field: (field) => (field.alias ? { ...field, alias: undefined } : undefined),
          StringValue: (_, key) => (key === "description" ? null : undefined),
          FragmentDefinition: rename,
          FragmentSpread: rename,
          VariableDefinition: () => false,
          Argument: (argument) => ({ ...argument, value: this.#outline(argument.value, typeInfo.getInputType()) }),
        }),
      ),
    );
    const [operation, ...others] = definitions as [OperationDefinitionNode, ...FragmentDefinitionNode[]];
    const variableDefinitions = [...this.#types].map(
      ([name, type]): VariableDefinitionNode => ({
        kind: Kind.VARIABLE_DEFINITION,
        variable: { kind: Kind.VARIABLE, name: { kind: Kind.NAME, value: name } },
        type: parseType(type),
      }),
    );
    const { kind, operation: type, selectionSet, directives = [] } = operation;
    const own: OperationDefinitionNode = { kind, operation: type, selectionSet, directives, variableDefinitions };
    return stripIgnoredCharacters([own, ...others].map(print).join("\n"));
  }

  #outline(value: ValueNode, type: GraphQLInputType | null | undefined): ValueNode {
    if (!type) return { kind: Kind.NULL };
    const named = getNamedType(type);
    if (value.kind === Kind.VARIABLE) return this.#outlineVariable(value.name.value, type);
    if (value.kind === Kind.NULL) return value;
    if (isListType(getNullableType(type)) && value.kind === Kind.LIST && isInputObjectType(named)) {
      const itemType = (getNullableType(type) as { readonly ofType: GraphQLInputType }).ofType;
      return listOf(value.values.map((item) => this.#outline(item, itemType)));
    }
    if (isInputObjectType(named) && value.kind === Kind.OBJECT) {
      const types = named.getFields();
      const fields = value.fields.map((field) => ({
        ...field,
        value: this.#outline(field.value, types[field.name.value]?.type),
      }));
      return { kind: Kind.OBJECT, fields };
    }
    return this.#placeholder(type);
  }

  /** Variables keep their declared types, unless they are objects. */
  #outlineVariable(name: string, type: GraphQLInputType): ValueNode {
    const definition = this.#operation.variableDefinitions?.find(({ variable }) => variable.name.value === name);
    if (!definition) return { kind: Kind.NULL };
    const declared = typeFromAST(this.#schema, definition.type as never) as GraphQLInputType | undefined;
    if (!declared) return { kind: Kind.NULL };
    if (isInputObjectType(getNamedType(type))) {
      if (Object.hasOwn(this.#variables, name)) return this.#outlineJson(this.#variables[name], declared);
      if (definition.defaultValue) return this.#outline(definition.defaultValue, declared);
    }
    const text = print(definition.type);
    const isGiven = definition.defaultValue && definition.defaultValue.kind !== Kind.NULL;
    return this.#variable(isGiven && !text.endsWith("!") ? `${text}!` : text);
  }

  #outlineJson(value: unknown, type: GraphQLInputType): ValueNode {
    if (value === null || value === undefined) return { kind: Kind.NULL };
    const named = getNamedType(type);
    if (!isInputObjectType(named)) return this.#placeholder(type);
    const nullable = getNullableType(type);
    if (isListType(nullable)) {
      const items = Array.isArray(value) ? value : [value];
      return listOf(items.map((item) => this.#outlineJson(item, nullable.ofType)));
    }
    if (!isJsonObject(value)) return { kind: Kind.NULL };
    const fields = Object.values(named.getFields())
      .filter(({ name }) => Object.hasOwn(value, name) && value[name] !== undefined)
      .map(
        (field): ObjectFieldNode => ({
          kind: Kind.OBJECT_FIELD,
          name: { kind: Kind.NAME, value: field.name },
          value: this.#outlineJson(value[field.name], field.type),
        }),
      );
    return { kind: Kind.OBJECT, fields };
  }

  /** A value that is given is not null. */
  #placeholder(type: GraphQLInputType): ValueNode {
    return this.#variable(`${getNullableType(type)}!`);
  }

  /** The variable of a type: a variable's name from the client could contain anything. */
  #variable(type: string): ValueNode {
    const existing = [...this.#types].find(([, known]) => known === type)?.[0];
    const name = existing ?? `v${this.#types.size + 1}`;
    this.#types.set(name, type);
    return { kind: Kind.VARIABLE, name: { kind: Kind.NAME, value: name } };
  }
}

/** Items of one shape are one. */
function listOf(values: readonly ValueNode[]): ValueNode {
  return { kind: Kind.LIST, values: [...new Map(values.map((value) => [print(value), value])).values()] };
}

function usedFragments(document: DocumentNode, operation: OperationDefinitionNode): FragmentDefinitionNode[] {
  const all = fragmentsOf(document);
  const used = new Map<string, FragmentDefinitionNode>();
  const collect = (node: OperationDefinitionNode | FragmentDefinitionNode) => {
    visit(node, {
      FragmentSpread({ name: { value: name } }) {
        const fragment = all.get(name);
        if (!fragment || used.has(name)) return;
        used.set(name, fragment);
        collect(fragment);
      },
    });
  };
  collect(operation);
  return [...used.values()];
}
