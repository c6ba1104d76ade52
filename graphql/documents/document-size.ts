import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  GraphQLError,
  Kind,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
  type ValueNode,
  visit,
} from "grafast/graphql";

export type DocumentLimits = {
  /** Nested levels of fields. */
  readonly depth: number;
  /** Fields, counting those of a fragment per spread, and the fields of `where`, `orderBy` and `search`. */
  readonly complexity: number;
  readonly tokens: number;
  readonly aliases: number;
  readonly directives: number;
  readonly rootFields: number;
};

type SelectionSize = {
  depth: number;
  complexity: number;
  /** Introspection fields, which have a limit of their own. */
  introspection: number;
  /** Fields named `types`. */
  types: number;
  /** Fields `types` within `__schema`, each a list of all types. */
  typeLists: number;
  rootFields: number;
  /** Fields with subselections. */
  branches: number;
  /** Branches of introspection. */
  schemaBranches: number;
  /** Nested levels of objects in these arguments. */
  conditionDepth: number;
  /** How often each variable is used in them. */
  conditionVariables: VariableUses;
};

/** The measures of a selection set that are the sums of those of its selections. */
const SUMMED = [
  "complexity",
  "introspection",
  "types",
  "typeLists",
  "rootFields",
  "branches",
  "schemaBranches",
] as const;

type VariableUses = ReadonlyMap<string, number>;

const NO_VARIABLES: VariableUses = new Map();

/** The arguments whose objects become parts of statements. */
const CONDITION_ARGUMENTS: ReadonlySet<string> = new Set(["where", "orderBy", "search"]);

const EMPTY_SIZE: Readonly<SelectionSize> = {
  depth: 0,
  complexity: 0,
  introspection: 0,
  types: 0,
  typeLists: 0,
  rootFields: 0,
  branches: 0,
  schemaBranches: 0,
  conditionDepth: 0,
  conditionVariables: NO_VARIABLES,
};

/** The introspection query of tools has about 230 fields, so the limit is never below this. */
const MIN_INTROSPECTION_LIMIT = 1000;
/** The introspection query of tools selects one. */
const MAX_TYPE_LISTS = 2;

type DocumentMeasure = {
  readonly errors: readonly GraphQLError[];
  /** Its memory, in units of about 40 kB, which a branch or twenty fields take. */
  readonly weight: number;
  /** The number of fields with subselections in the largest operation, without introspection. */
  readonly branches: number;
  /** The remaining limits for variables in the condition arguments, by the name of the operation. */
  readonly conditions: ReadonlyMap<string | undefined, ConditionAllowance>;
};

export type ConditionAllowance = {
  readonly uses: VariableUses;
  /** The sizes of the values of variables that a client does not give. */
  readonly defaults: ReadonlyMap<string, ValueSize>;
  readonly complexity: number;
  readonly limits: DocumentLimits;
};

type ValueSize = { readonly fields: number; readonly depth: number };

const FIELDS_PER_BRANCH = 20;

/**
 * Checks the size of a document against limits. Needs no schema and runs before all steps whose cost grows faster than the document.
 * `@skip` and `@include` are ignored: the limits do not depend on variables.
 */
export function measureDocument(document: DocumentNode, limits: DocumentLimits): DocumentMeasure {
  const { aliases, directives } = countAliasesAndDirectives(document);
  const sizer = new SelectionSizer(document);
  const sizes = operationsOf(document).map((operation) => ({ operation, size: sizer.sizeOf(operation.selectionSet) }));
  const errors = sizes.flatMap(({ operation, size }) => findExcesses(operation, size, limits));
  if (aliases > limits.aliases) errors.push(tooComplexError(`The document has ${aliases} aliases`, limits.aliases));
  if (directives > limits.directives)
    errors.push(tooComplexError(`The document has ${directives} directives`, limits.directives));
  return {
    errors,
    weight: sizes.reduce((sum, { size }) => sum + weightOf(size), 0),
    branches: Math.max(0, ...sizes.map(({ size }) => size.branches - size.schemaBranches)),
    conditions: new Map(
      sizes.map(({ operation, size }) => [
        operation.name?.value,
        { uses: size.conditionVariables, defaults: defaultsOf(operation), complexity: size.complexity, limits },
      ]),
    ),
  };
}

/** Errors if the values of variables in such arguments exceed the limits of the operation. */
export function measureConditionVariables(
  { uses, defaults, complexity, limits }: ConditionAllowance,
  variables: Readonly<Record<string, unknown>>,
): GraphQLError[] {
  let total = complexity;
  for (const [name, count] of uses) {
    const value = variables[name];
    const size = (value === undefined && defaults.get(name)) || sizeOfValue(value, limits.complexity);
    if (size.depth > limits.depth) return [conditionTooDeep(limits.depth)];
    total += count * size.fields;
  }
  if (total <= limits.complexity) return [];
  return [tooComplexError("The operation has too many fields and conditions", limits.complexity)];
}

/** The number of fields in a JSON value and their depth. Iterates, since the value may be too deep for recursion; stops at the limit. */
function sizeOfValue(value: unknown, maxFields: number): ValueSize {
  let fields = 0;
  let depth = 0;
  let level = [value];
  while (level.length > 0 && fields <= maxFields) {
    const next: unknown[] = [];
    let hasObjects = false;
    for (const item of level) {
      if (Array.isArray(item)) {
        for (const each of item) if (typeof each === "object") next.push(each);
      } else if (typeof item === "object" && item !== null) {
        const members = Object.values(item);
        fields += members.length;
        hasObjects = true;
        for (const each of members) if (typeof each === "object") next.push(each);
      }
    }
    if (hasObjects) depth += 1;
    level = next;
  }
  return { fields, depth };
}

function defaultsOf({ variableDefinitions = [] }: OperationDefinitionNode): ReadonlyMap<string, ValueSize> {
  return new Map(
    variableDefinitions.flatMap(({ variable, defaultValue }) =>
      defaultValue ? [[variable.name.value, sizeOfCondition(defaultValue)] as const] : [],
    ),
  );
}

function conditionTooDeep(limit: number, operation?: OperationDefinitionNode): GraphQLError {
  return new GraphQLError(`A where or orderBy has too many levels; ${limit} are allowed.`, {
    extensions: { code: "QUERY_TOO_DEEP" },
    nodes: operation ?? null,
  });
}

function weightOf({ branches, complexity, introspection }: SelectionSize): number {
  return branches + (complexity + introspection) / FIELDS_PER_BRANCH;
}

function findExcesses(operation: OperationDefinitionNode, size: SelectionSize, limits: DocumentLimits): GraphQLError[] {
  const errors: GraphQLError[] = [];
  if (size.depth > limits.depth) errors.push(tooDeepError(size.depth, limits.depth, operation));
  if (size.conditionDepth > limits.depth) errors.push(conditionTooDeep(limits.depth, operation));
  const counted = [
    [size.complexity, limits.complexity, "fields"],
    [size.introspection, Math.max(limits.complexity, MIN_INTROSPECTION_LIMIT), "introspection fields"],
    [size.typeLists, MAX_TYPE_LISTS, "lists of all types"],
    [size.rootFields, limits.rootFields, "fields at its root"],
  ] as const;
  for (const [number, limit, unit] of counted) {
    if (number > limit) errors.push(tooComplexError(`The operation has ${number} ${unit}`, limit, operation));
  }
  return errors;
}

export function tooDeepError(
  depth: number | "too many",
  limit: number,
  operation?: OperationDefinitionNode,
): GraphQLError {
  return new GraphQLError(
    `The operation has ${depth} levels; ${limit} are allowed. Split it into smaller operations.`,
    {
      extensions: { code: "QUERY_TOO_DEEP" },
      nodes: operation ?? null,
    },
  );
}

export function tooComplexError(finding: string, limit: number, operation?: OperationDefinitionNode): GraphQLError {
  return new GraphQLError(`${finding}; ${limit} are allowed. Split it into smaller operations.`, {
    extensions: { code: "QUERY_TOO_COMPLEX" },
    nodes: operation ?? null,
  });
}

function operationsOf({ definitions }: DocumentNode): OperationDefinitionNode[] {
  return definitions.filter((definition) => definition.kind === Kind.OPERATION_DEFINITION);
}

function countAliasesAndDirectives(document: DocumentNode): { aliases: number; directives: number } {
  let aliases = 0;
  let directives = 0;
  visit(document, {
    Field: (field) => void (field.alias && aliases++),
    Directive: () => void directives++,
  });
  return { aliases, directives };
}

/** Measures each fragment once, however often it is spread. A cycle counts once, and validation refuses it. */
class SelectionSizer {
  readonly #fragments: Fragments;
  readonly #sizes = new Map<string, SelectionSize>();

  constructor(document: DocumentNode) {
    this.#fragments = fragmentsOf(document);
  }

  sizeOf(set: SelectionSetNode | undefined): SelectionSize {
    const total = { ...EMPTY_SIZE };
    for (const selection of set?.selections ?? []) {
      const size = this.#sizeOfSelection(selection);
      for (const measure of SUMMED) total[measure] += size[measure];
      total.depth = Math.max(total.depth, size.depth);
      total.conditionDepth = Math.max(total.conditionDepth, size.conditionDepth);
      total.conditionVariables = sumUses(total.conditionVariables, size.conditionVariables);
    }
    return total;
  }

  #sizeOfSelection(selection: SelectionNode): SelectionSize {
    if (selection.kind === Kind.FRAGMENT_SPREAD) return this.#sizeOfFragment(selection.name.value);
    const below = this.sizeOf(selection.selectionSet);
    if (selection.kind === Kind.INLINE_FRAGMENT) return below;
    const branches = below.branches + (selection.selectionSet ? 1 : 0);
    if (selection.name.value.startsWith("__")) {
      const introspection = 1 + below.complexity + below.introspection;
      const typeLists = below.types;
      return { ...EMPTY_SIZE, introspection, typeLists, rootFields: 1, branches, schemaBranches: branches };
    }
    const types = below.types + (selection.name.value === "types" ? 1 : 0);
    const size = { ...below, depth: 1 + below.depth, complexity: 1 + below.complexity, types, rootFields: 1, branches };
    return addConditions(size, selection);
  }

  #sizeOfFragment(name: string): SelectionSize {
    const measured = this.#sizes.get(name);
    if (measured) return measured;
    this.#sizes.set(name, EMPTY_SIZE);
    const size = this.sizeOf(this.#fragments.get(name)?.selectionSet);
    this.#sizes.set(name, size);
    return size;
  }
}

function addConditions(size: SelectionSize, { arguments: given = [] }: FieldNode): SelectionSize {
  let { complexity, conditionDepth, conditionVariables } = size;
  for (const { name, value } of given) {
    if (!CONDITION_ARGUMENTS.has(name.value)) continue;
    const condition = sizeOfCondition(value);
    complexity += condition.fields;
    conditionDepth = Math.max(conditionDepth, condition.depth);
    conditionVariables = sumUses(conditionVariables, condition.variables);
  }
  return { ...size, complexity, conditionDepth, conditionVariables };
}

type ConditionSize = ValueSize & { readonly variables: VariableUses };

function sizeOfCondition(node: ValueNode): ConditionSize {
  if (node.kind === Kind.VARIABLE) return { fields: 0, depth: 0, variables: new Map([[node.name.value, 1]]) };
  if (node.kind !== Kind.LIST && node.kind !== Kind.OBJECT) return { fields: 0, depth: 0, variables: NO_VARIABLES };
  const isObject = node.kind === Kind.OBJECT;
  const inner = isObject ? node.fields.map(({ value }) => sizeOfCondition(value)) : node.values.map(sizeOfCondition);
  return {
    fields: inner.reduce((sum, { fields }) => sum + fields, isObject ? inner.length : 0),
    depth: inner.reduce((max, { depth }) => Math.max(max, depth), 0) + (isObject ? 1 : 0),
    variables: inner.reduce((sum, { variables }) => sumUses(sum, variables), NO_VARIABLES),
  };
}

function sumUses(one: VariableUses, other: VariableUses): VariableUses {
  if (other.size === 0) return one;
  const sum = new Map(one);
  for (const [name, count] of other) sum.set(name, (sum.get(name) ?? 0) + count);
  return sum;
}

export type Fragments = ReadonlyMap<string, FragmentDefinitionNode>;

export function fragmentsOf({ definitions }: DocumentNode): Fragments {
  const fragments = definitions.filter((definition) => definition.kind === Kind.FRAGMENT_DEFINITION);
  return new Map(fragments.map((fragment) => [fragment.name.value, fragment]));
}
