import {
  type DocumentNode,
  type FragmentDefinitionNode,
  GraphQLError,
  Kind,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
  visit,
} from "postgraphile/graphql";

export type Limits = {
  /** Nested levels of fields. */
  readonly depth: number;
  /** Fields, those of fragments as often as they are spread. */
  readonly complexity: number;
  readonly tokens: number;
  readonly aliases: number;
  readonly directives: number;
  readonly rootFields: number;
};

type Size = {
  readonly depth: number;
  readonly complexity: number;
  /** Fields that ask about the schema, which have a budget of their own. */
  readonly introspection: number;
  /** Fields `types`, of whatever. */
  readonly types: number;
  /** Those of the schema: each is as long as the database is large. */
  readonly typeLists: number;
  readonly rootFields: number;
  /** Fields with fields of their own, for which there is something to plan. */
  readonly branches: number;
  /** Those of them that ask about the schema, which nobody plans. */
  readonly schemaBranches: number;
};

const NOTHING: Size = {
  depth: 0,
  complexity: 0,
  introspection: 0,
  types: 0,
  typeLists: 0,
  rootFields: 0,
  branches: 0,
  schemaBranches: 0,
};

/** Tools ask some 230 to know the whole schema, whatever a deployment allows of the others. */
const LEAST_ABOUT_SCHEMA = 1000;
/** Whoever wants to know the schema asks for them once. */
const MOST_TYPE_LISTS = 2;

export type Measured = {
  readonly errors: readonly GraphQLError[];
  /** What its plan will weigh, in units of about 40 kB: as much as a branch, or twenty fields, takes. */
  readonly weight: number;
  /** How many fields the largest operation has for which there is something to plan. */
  readonly planned: number;
};

const FIELDS_PER_BRANCH = 20;

/**
 * What is too large about a document. It is found without a schema, before anything whose cost grows faster than the document does.
 * `@skip` and `@include` are not looked at: what may be asked does not depend on variables.
 */
export function measure(document: DocumentNode, limits: Limits): Measured {
  const { aliases, directives } = count(document);
  const sizeOf = makeSizer(document);
  const sizes = operationsOf(document).map((operation) => ({ operation, size: sizeOf(operation) }));
  const errors = sizes.flatMap(({ operation, size }) => excessesOf(operation, size, limits));
  if (aliases > limits.aliases) errors.push(tooComplex(`The document has ${aliases} aliases`, limits.aliases));
  if (directives > limits.directives)
    errors.push(tooComplex(`The document has ${directives} directives`, limits.directives));
  return {
    errors,
    weight: sizes.reduce((sum, { size }) => sum + weightOf(size), 0),
    planned: Math.max(0, ...sizes.map(({ size }) => size.branches - size.schemaBranches)),
  };
}

function weightOf({ branches, complexity, introspection }: Size): number {
  return branches + (complexity + introspection) / FIELDS_PER_BRANCH;
}

function excessesOf(operation: OperationDefinitionNode, size: Size, limits: Limits): GraphQLError[] {
  const errors: GraphQLError[] = [];
  if (size.depth > limits.depth) errors.push(tooDeep(size.depth, limits.depth, operation));
  const counted = [
    [size.complexity, limits.complexity, "fields"],
    [size.introspection, Math.max(limits.complexity, LEAST_ABOUT_SCHEMA), "fields about the schema"],
    [size.typeLists, MOST_TYPE_LISTS, "lists of all types"],
    [size.rootFields, limits.rootFields, "fields at its root"],
  ] as const;
  for (const [number, limit, what] of counted) {
    if (number > limit) errors.push(tooComplex(`The operation has ${number} ${what}`, limit, operation));
  }
  return errors;
}

export function tooDeep(depth: number | "too many", limit: number, operation?: OperationDefinitionNode): GraphQLError {
  return new GraphQLError(`The operation has ${depth} levels; ${limit} are allowed. Ask for less at once.`, {
    extensions: { code: "QUERY_TOO_DEEP" },
    nodes: operation ?? null,
  });
}

export function tooComplex(fact: string, limit: number, operation?: OperationDefinitionNode): GraphQLError {
  return new GraphQLError(`${fact}; ${limit} are allowed. Ask for less at once.`, {
    extensions: { code: "QUERY_TOO_COMPLEX" },
    nodes: operation ?? null,
  });
}

function operationsOf({ definitions }: DocumentNode): OperationDefinitionNode[] {
  return definitions.filter((definition) => definition.kind === Kind.OPERATION_DEFINITION);
}

function count(document: DocumentNode): { aliases: number; directives: number } {
  let aliases = 0;
  let directives = 0;
  visit(document, {
    Field: (field) => void (field.alias && aliases++),
    Directive: () => void directives++,
  });
  return { aliases, directives };
}

/** Each fragment is measured once, however often it is spread; a cycle ends where it closes, and is refused by validation. */
function makeSizer({ definitions }: DocumentNode): (operation: OperationDefinitionNode) => Size {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  }
  const known = new Map<string, Size>();

  const ofFragment = (name: string): Size => {
    const measured = known.get(name);
    if (measured) return measured;
    known.set(name, NOTHING);
    const fragment = fragments.get(name);
    const size = fragment ? ofSelections(fragment.selectionSet) : NOTHING;
    known.set(name, size);
    return size;
  };

  const ofSelection = (selection: SelectionNode): Size => {
    if (selection.kind === Kind.FRAGMENT_SPREAD) return ofFragment(selection.name.value);
    if (selection.kind === Kind.INLINE_FRAGMENT) return ofSelections(selection.selectionSet);
    const below = ofSelections(selection.selectionSet);
    const branches = below.branches + (selection.selectionSet ? 1 : 0);
    if (selection.name.value.startsWith("__")) {
      const introspection = 1 + below.complexity + below.introspection;
      return {
        ...NOTHING,
        introspection,
        typeLists: below.types,
        rootFields: 1,
        branches,
        schemaBranches: branches,
      };
    }
    const types = below.types + (selection.name.value === "types" ? 1 : 0);
    return { ...below, depth: 1 + below.depth, complexity: 1 + below.complexity, types, rootFields: 1, branches };
  };

  const ofSelections = (set: SelectionSetNode | undefined): Size => {
    let { depth, complexity, introspection, types, typeLists, rootFields, branches, schemaBranches } = NOTHING;
    for (const selection of set?.selections ?? []) {
      const size = ofSelection(selection);
      depth = Math.max(depth, size.depth);
      complexity += size.complexity;
      introspection += size.introspection;
      types += size.types;
      typeLists += size.typeLists;
      rootFields += size.rootFields;
      branches += size.branches;
      schemaBranches += size.schemaBranches;
    }
    return { depth, complexity, introspection, types, typeLists, rootFields, branches, schemaBranches };
  };

  return ({ selectionSet }) => ofSelections(selectionSet);
}
