import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isAbstractType,
  isListType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from "grafast/graphql";
import { type PagePart, sourceOf } from "#plugins";
import { NotCompiled } from "./not-compiled.ts";
import type { OperationValues } from "./operation-values.ts";

export type Field = GraphQLField<unknown, unknown>;

/** Collects the fields of selection sets, with fragments and conditions, as the GraphQL specification does (section 6.3.2). */
export class SelectionReader {
  readonly schema: GraphQLSchema;
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  readonly #values: OperationValues;

  constructor(schema: GraphQLSchema, { definitions }: DocumentNode, values: OperationValues) {
    this.schema = schema;
    const fragments = definitions.filter((definition) => definition.kind === Kind.FRAGMENT_DEFINITION);
    this.#fragments = new Map(fragments.map((fragment) => [fragment.name.value, fragment]));
    this.#values = values;
  }

  /** The selected fields by response key, in the order of their first selection. */
  fieldsOf(
    type: GraphQLObjectType,
    selections: readonly SelectionSetNode[],
    found = new Map<string, FieldNode[]>(),
    spread = new Set<string>(),
  ): Map<string, FieldNode[]> {
    for (const selection of selections.flatMap((set) => set.selections)) {
      if (this.#values.isExcluded(selection.directives)) continue;
      if (selection.kind === Kind.FIELD) {
        const key = (selection.alias ?? selection.name).value;
        const nodes = found.get(key);
        if (nodes) nodes.push(selection);
        else found.set(key, [selection]);
        continue;
      }
      const isSpread = selection.kind === Kind.FRAGMENT_SPREAD;
      if (isSpread && spread.has(selection.name.value)) continue;
      if (isSpread) spread.add(selection.name.value);
      const fragment = isSpread ? this.#fragments.get(selection.name.value)! : selection;
      if (this.#applies(fragment.typeCondition?.name.value, type))
        this.fieldsOf(type, [fragment.selectionSet], found, spread);
    }
    return found;
  }

  /** True if at least one field is selected and all selected fields pass the test; `__typename` does not count. */
  hasOnly(
    type: GraphQLObjectType,
    selections: readonly SelectionSetNode[],
    isSuch: (field: Field) => boolean,
  ): boolean {
    const fields = type.getFields();
    const own = [...this.fieldsOf(type, selections).values()].filter((nodes) => !isTypename(nodes));
    return own.length > 0 && own.every(([node]) => isSuch(fields[node!.name.value]!));
  }

  #applies(condition: string | undefined, type: GraphQLObjectType): boolean {
    if (condition === undefined || condition === type.name) return true;
    const other = this.schema.getType(condition);
    return isAbstractType(other) && this.schema.isSubType(other, type);
  }
}

/** A field of the operation itself. */
export type RootField = {
  readonly key: string;
  readonly nodes: readonly FieldNode[];
  readonly type: GraphQLOutputType;
  /** The value of `__typename`, which does not fail. */
  readonly constant?: string;
};

export type SelectedField = readonly [key: string, nodes: readonly FieldNode[]];

/** Splits the fields into groups of one field each. A group includes the `__typename` before its field, the last group also those after it. */
export function oneFieldEach(fields: readonly SelectedField[]): SelectedField[][] {
  const groups: SelectedField[][] = [[]];
  for (const field of fields) {
    if (!isTypename(field[1]) && groups.at(-1)!.some(([, nodes]) => !isTypename(nodes))) groups.push([]);
    groups.at(-1)!.push(field);
  }
  return groups;
}

export function isTypename(nodes: readonly FieldNode[]): boolean {
  return nodes[0]!.name.value === "__typename";
}

/** The document with these fields of the operation only. */
export function withFields(
  document: DocumentNode,
  operation: OperationDefinitionNode,
  fields: readonly SelectedField[],
): DocumentNode {
  const selections = fields.flatMap(([, nodes]) => nodes);
  const own = { ...operation, selectionSet: { ...operation.selectionSet, selections } };
  return { ...document, definitions: document.definitions.map((each) => (each === operation ? own : each)) };
}

export function selectionsOf(nodes: readonly FieldNode[]): SelectionSetNode[] {
  return nodes.flatMap(({ selectionSet }) => selectionSet ?? []);
}

export function itemTypeOf(type: GraphQLOutputType): GraphQLOutputType {
  const list = getNullableType(type);
  if (!isListType(list)) throw new NotCompiled("type", String(type));
  return list.ofType;
}

export function objectTypeOf(type: GraphQLOutputType): GraphQLObjectType {
  const named = getNamedType(type);
  if (!isObjectType(named)) throw new NotCompiled("type", named.name);
  return named;
}

/** The part of a connection, an edge or a page that the field is. */
export function partOf(type: GraphQLObjectType, field: Field): PagePart {
  const source = sourceOf(field);
  if (source?.kind !== "page") throw new NotCompiled("field", `${type.name}.${field.name}`);
  return source.part;
}

export function isCount(field: Field): boolean {
  const source = sourceOf(field);
  return source?.kind === "page" && source.part === "totalCount";
}
