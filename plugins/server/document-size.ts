import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  GraphQLError,
  Kind,
  type OperationDefinitionNode,
  print,
  type SelectionNode,
  type SelectionSetNode,
  visit,
} from "postgraphile/graphql";

const NO_AMPLIFICATION: ResponseAmplification = { factor: 1, keyBytes: 0 };

/** `"":,` and the braces around a row. */
const PUNCTUATION_BYTES = 6;

export type DocumentLimits = {
  /** Nested levels of fields. */
  readonly depth: number;
  /** Fields, those of fragments as often as they are spread. */
  readonly complexity: number;
  readonly tokens: number;
  readonly aliases: number;
  readonly directives: number;
  readonly rootFields: number;
};

type SelectionSize = {
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

const EMPTY_SIZE: SelectionSize = {
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
const MIN_INTROSPECTION_LIMIT = 1000;
/** Whoever wants to know the schema asks for them once. */
const MAX_TYPE_LISTS = 2;

type DocumentMeasure = {
  readonly errors: readonly GraphQLError[];
  /** What its plan will weigh, in units of about 40 kB: as much as a branch, or twenty fields, takes. */
  readonly weight: number;
  /** How many fields the largest operation has for which there is something to plan. */
  readonly plannedFields: number;
};

const FIELDS_PER_BRANCH = 20;

/**
 * What is too large about a document. It is found without a schema, before anything whose cost grows faster than the document does.
 * `@skip` and `@include` are not looked at: what may be asked does not depend on variables.
 */
export function measureDocument(document: DocumentNode, limits: DocumentLimits): DocumentMeasure {
  const { aliases, directives } = countAliasesAndDirectives(document);
  const sizeOf = makeSelectionSizer(document);
  const sizes = operationsOf(document).map((operation) => ({ operation, size: sizeOf(operation) }));
  const errors = sizes.flatMap(({ operation, size }) => findExcesses(operation, size, limits));
  if (aliases > limits.aliases) errors.push(tooComplexError(`The document has ${aliases} aliases`, limits.aliases));
  if (directives > limits.directives)
    errors.push(tooComplexError(`The document has ${directives} directives`, limits.directives));
  return {
    errors,
    weight: sizes.reduce((sum, { size }) => sum + weightOf(size), 0),
    plannedFields: Math.max(0, ...sizes.map(({ size }) => size.branches - size.schemaBranches)),
  };
}

function weightOf({ branches, complexity, introspection }: SelectionSize): number {
  return branches + (complexity + introspection) / FIELDS_PER_BRANCH;
}

function findExcesses(operation: OperationDefinitionNode, size: SelectionSize, limits: DocumentLimits): GraphQLError[] {
  const errors: GraphQLError[] = [];
  if (size.depth > limits.depth) errors.push(tooDeepError(size.depth, limits.depth, operation));
  const counted = [
    [size.complexity, limits.complexity, "fields"],
    [size.introspection, Math.max(limits.complexity, MIN_INTROSPECTION_LIMIT), "fields about the schema"],
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
  return new GraphQLError(`The operation has ${depth} levels; ${limit} are allowed. Ask for less at once.`, {
    extensions: { code: "QUERY_TOO_DEEP" },
    nodes: operation ?? null,
  });
}

export function tooComplexError(finding: string, limit: number, operation?: OperationDefinitionNode): GraphQLError {
  return new GraphQLError(`${finding}; ${limit} are allowed. Ask for less at once.`, {
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

/** Each fragment is measured once, however often it is spread; a cycle ends where it closes, and is refused by validation. */
function makeSelectionSizer({ definitions }: DocumentNode): (operation: OperationDefinitionNode) => SelectionSize {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  }
  const known = new Map<string, SelectionSize>();

  const ofFragment = (name: string): SelectionSize => {
    const measured = known.get(name);
    if (measured) return measured;
    known.set(name, EMPTY_SIZE);
    const fragment = fragments.get(name);
    const size = fragment ? ofSelections(fragment.selectionSet) : EMPTY_SIZE;
    known.set(name, size);
    return size;
  };

  const ofSelection = (selection: SelectionNode): SelectionSize => {
    if (selection.kind === Kind.FRAGMENT_SPREAD) return ofFragment(selection.name.value);
    if (selection.kind === Kind.INLINE_FRAGMENT) return ofSelections(selection.selectionSet);
    const below = ofSelections(selection.selectionSet);
    const branches = below.branches + (selection.selectionSet ? 1 : 0);
    if (selection.name.value.startsWith("__")) {
      const introspection = 1 + below.complexity + below.introspection;
      return {
        ...EMPTY_SIZE,
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

  const ofSelections = (set: SelectionSetNode | undefined): SelectionSize => {
    let { depth, complexity, introspection, types, typeLists, rootFields, branches, schemaBranches } = EMPTY_SIZE;
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

/** How much larger an answer can be than the rows that it is made of. */
export type ResponseAmplification = {
  /** How often one value may be told, under aliases of its field. */
  readonly factor: number;
  /** What the names of fields add to each row. */
  readonly keyBytes: number;
};

/** At least what the operation can make of its rows: what is merged, or left out by a directive, is counted too. */
export function measureAmplification(
  { selectionSet }: OperationDefinitionNode,
  { definitions }: DocumentNode,
): ResponseAmplification {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  }
  const known = new Map<string, ResponseAmplification>();

  // Only the same question is answered by the same rows, so at the root each question has rows of its own.
  return [...amplificationByField(selectionSet).values()].reduce(largerAmplification, NO_AMPLIFICATION);

  function amplificationByField(
    set: SelectionSetNode | undefined,
    found = new Map<string, ResponseAmplification>(),
  ): Map<string, ResponseAmplification> {
    for (const selection of set?.selections ?? []) {
      if (selection.kind === Kind.FIELD) {
        const fieldKey = selection.name.value + (selection.arguments ?? []).map(print).join();
        found.set(fieldKey, sumAmplification(found.get(fieldKey), ofField(selection)));
      } else if (selection.kind === Kind.INLINE_FRAGMENT) {
        amplificationByField(selection.selectionSet, found);
      } else {
        const fieldKey = `...${selection.name.value}`;
        found.set(fieldKey, sumAmplification(found.get(fieldKey), ofFragment(selection.name.value)));
      }
    }
    return found;
  }

  function ofField({ name, alias, selectionSet }: FieldNode): ResponseAmplification {
    const { factor: times, keyBytes } = ofSelections(selectionSet);
    return { factor: times, keyBytes: keyBytes + (alias ?? name).value.length + PUNCTUATION_BYTES };
  }

  function ofFragment(name: string): ResponseAmplification {
    const measured = known.get(name);
    if (measured) return measured;
    known.set(name, NO_AMPLIFICATION);
    const amplification = ofSelections(fragments.get(name)?.selectionSet);
    known.set(name, amplification);
    return amplification;
  }

  function ofSelections(set: SelectionSetNode | undefined): ResponseAmplification {
    let plain = 0;
    let spread = 0;
    let keyBytes = 0;
    for (const [fieldKey, amplification] of amplificationByField(set)) {
      // A fragment may ask what stands beside it.
      if (fieldKey.startsWith("...")) spread += amplification.factor;
      else plain = Math.max(plain, amplification.factor);
      keyBytes += amplification.keyBytes;
    }
    return { factor: Math.max(1, plain + spread), keyBytes };
  }
}

function sumAmplification(one: ResponseAmplification | undefined, other: ResponseAmplification): ResponseAmplification {
  return one ? { factor: one.factor + other.factor, keyBytes: one.keyBytes + other.keyBytes } : other;
}

function largerAmplification(one: ResponseAmplification, other: ResponseAmplification): ResponseAmplification {
  return { factor: Math.max(one.factor, other.factor), keyBytes: Math.max(one.keyBytes, other.keyBytes) };
}

/** What rows may become in the answer. */
export function estimateResponseBytes(
  rows: readonly (readonly (string | null)[])[],
  { factor: times, keyBytes }: ResponseAmplification,
): number {
  let bytes = 0;
  let count = rows.length;
  for (const row of rows) {
    for (const cell of row) {
      if (cell === null) continue;
      bytes += cell.length;
      // Rows of nested lists come as arrays within one cell.
      if (cell.startsWith("[")) for (let at = 0; at >= 0; at = cell.indexOf("[", at + 1)) count++;
    }
  }
  return bytes * times + count * keyBytes;
}
