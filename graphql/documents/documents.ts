import {
  type ASTNode,
  BREAK,
  type DirectiveNode,
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  isInputObjectType,
  isNonNullType,
  Kind,
  type OperationDefinitionNode,
  OperationTypeNode,
  parse,
  type SelectionNode,
  type SelectionSetNode,
  TypeInfo,
  ValidationContext,
  visit,
} from "grafast/graphql";
import { type CacheHits, memoizePerObject, RecentMap } from "#runtime";
import type { Stepwise } from "#runtime/concurrency";
import { OperationPlans } from "../compile/operation-plans.ts";
import {
  type DocumentLimits,
  type Fragments,
  fragmentsOf,
  measureConditionVariables,
  measureDocument,
  tooComplexError,
  tooDeepError,
} from "./document-size.ts";
import { makeRestoreDigits, type RestoreDigits } from "./exact-numbers.ts";
import { GraphqlRefusal, refusalOf } from "./graphql-refusal.ts";
import { type LiveDocument, toLiveDocument } from "./live-document.ts";
import { validateInSteps } from "./stepwise-validation.ts";
import { UnfinishedSchema } from "./unfinished-schema.ts";

/** 200 MB, in units of 40 kB. */
const MAX_WEIGHT = 5_000;

type DocumentVariables = Readonly<Record<string, unknown>>;

/** A document that may be executed. */
export type CheckedDocument = {
  readonly document: DocumentNode;
  /** The number of fields with subselections in its largest operation, without introspection. */
  readonly branches: number;
  /** True if an operation selects `__schema` or `__type`. */
  readonly isIntrospection: boolean;
  /** The approximate memory of the document and its statements. */
  readonly bytes: number;
  /** The operation of that name, or the only one. */
  operation(name: string | null): OperationDefinitionNode;
  /** The statements of one of its operations. */
  plans(operation: OperationDefinitionNode): OperationPlans;
  /** The query of a live query's subfields; null for other operations. */
  live(operation: OperationDefinitionNode): LiveDocument | null;
  /** Null when no variable of the operation can have lost digits. */
  restoreDigits(operation: OperationDefinitionNode): RestoreDigits | null;
  /**
   * Refuses a null where the operation needs a value, since a default replaces absent variables only. Removes the prototypes of
   * their objects where a field name could match a method. Refuses conditions that exceed the limits.
   */
  checkVariables(operation: OperationDefinitionNode, variables: DocumentVariables): void;
};

const MAX_CACHED_DOCUMENTS = 500;
const BYTES_PER_WEIGHT = 40_000;
/** The AST with its locations is cached too: one weight unit per so many characters. */
const CHARACTERS_PER_WEIGHT = 500;
/** The text of a statement is held once here, and once per connection that has prepared it. */
const STATEMENT_CHARACTERS_PER_WEIGHT = 5_000;
/** Longer documents are not cached. */
const MAX_CACHED_LENGTH = 100_000;
const PAGE_SIZE_ARGUMENTS: ReadonlySet<string> = new Set(["first", "last", "limit", "offset"]);
/** Validation stops after so many errors. */
const MAX_VALIDATION_ERRORS = 20;

export type DocumentReaderOptions = {
  readonly schema: GraphQLSchema;
  readonly limits: DocumentLimits;
  /** Shared by all schemas. */
  readonly memory: DocumentBudget;
  /** Counts cache hits. */
  readonly hits?: CacheHits | undefined;
  /** Called when a document fails validation. */
  readonly onInvalid?: (() => void) | undefined;
};

export type DocumentReader = {
  /** Parses and validates a document, or throws a GraphqlRefusal. */
  read(text: string): Stepwise<CheckedDocument>;
};

/** Parses and validates documents against one schema and caches them; refused ones are not cached. */
export function makeDocumentReader({ schema, limits, memory, hits, onInvalid }: DocumentReaderOptions): DocumentReader {
  const cache = new RecentMap<string, CheckedDocument>(MAX_CACHED_DOCUMENTS, undefined, hits);
  const hasPrototypeNames = schema instanceof UnfinishedSchema || hasPrototypeFieldNames(schema);
  memory.onFull(() => cache.clear());
  const reserve = (characters: number) => memory.reserve(characters / STATEMENT_CHARACTERS_PER_WEIGHT);
  function* read(text: string): Stepwise<CheckedDocument> {
    const cached = cache.get(text);
    if (cached) return cached;
    yield;
    // Another request may have read the document in the meantime.
    if (cache.has(text)) return cache.get(text)!;
    const { document, weight, branches, conditions } = yield* parseAndValidate(text, schema, limits, onInvalid);
    yield;
    memory.reserve(weight);
    const checkRequired = makeVariableCheck(document, schema);
    const checkConditions: CheckedDocument["checkVariables"] = (operation, variables) => {
      const allowance = conditions.get(operation.name?.value);
      if (allowance && allowance.uses.size > 0) refuseIfAny(measureConditionVariables(allowance, variables));
    };
    const checked: CheckedDocument = {
      document,
      branches,
      isIntrospection: hasIntrospection(document),
      bytes: weight * BYTES_PER_WEIGHT,
      operation: memoizeOperations(document, schema),
      plans: memoizePerObject((operation) => new OperationPlans({ schema, document, operation, reserve })),
      live: memoizePerObject((operation) => toLiveDocument(document, operation.name?.value, schema)),
      restoreDigits: memoizePerObject((operation) => {
        const restore = makeRestoreDigits(operation, schema);
        if (restore === null) return null;
        return (variables, parseExactly) => {
          // It recurses per level of a value.
          checkConditions(operation, variables);
          return restore(variables, parseExactly);
        };
      }),
      checkVariables: (operation, variables) => {
        checkRequired(operation, variables);
        checkConditions(operation, variables);
        if (hasPrototypeNames) dropPrototypes(variables);
      },
    };
    if (text.length <= MAX_CACHED_LENGTH) cache.set(text, checked);
    return checked;
  }
  return { read };
}

function* parseAndValidate(
  text: string,
  schema: GraphQLSchema,
  limits: DocumentLimits,
  onInvalid: DocumentReaderOptions["onInvalid"],
) {
  try {
    const document = parseWithinLimits(text, limits);
    yield;
    const { errors, weight, branches, conditions } = measureDocument(document, limits);
    refuseIfAny(errors);
    refuseIfAny(findSubscriptionFaults(document));
    const faults = yield* validateInSteps(schema, document, MAX_VALIDATION_ERRORS);
    if (faults.length > 0) {
      onInvalid?.();
      throw new GraphqlRefusal(faults.map(makeValidationError(document)));
    }
    return {
      document,
      weight: weight + text.length / CHARACTERS_PER_WEIGHT,
      branches,
      conditions,
    };
  } catch (error) {
    // The parser and visitors of values recurse per level.
    if (error instanceof RangeError) throw new GraphqlRefusal([tooDeepError("too many", limits.depth)]);
    // The validation rule for subscriptions evaluates conditions at the root, which throws when they are malformed.
    if (error instanceof GraphQLError) throw new GraphqlRefusal([withCode(error, "GRAPHQL_VALIDATION_FAILED")]);
    throw error;
  }
}

function refuseIfAny(errors: readonly GraphQLError[]): void {
  if (errors.length > 0) throw new GraphqlRefusal(errors);
}

function parseWithinLimits(text: string, { tokens }: DocumentLimits): DocumentNode {
  try {
    return parse(text, { maxTokens: tokens });
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error;
    if (error.message.includes("Parsing aborted")) {
      throw new GraphqlRefusal([tooComplexError("The document has too many tokens", tokens)]);
    }
    throw new GraphqlRefusal([withCode(error, "GRAPHQL_PARSE_FAILED")]);
  }
}

const INTROSPECTION_FIELDS: ReadonlySet<string> = new Set(["__schema", "__type"]);

function hasIntrospection(document: DocumentNode): boolean {
  let isFound = false;
  visit(document, {
    Field({ name }) {
      if (!INTROSPECTION_FIELDS.has(name.value)) return undefined;
      isFound = true;
      return BREAK;
    },
  });
  return isFound;
}

function memoizeOperations(document: DocumentNode, schema: GraphQLSchema): CheckedDocument["operation"] {
  const cache = new Map<string | null, OperationDefinitionNode>();
  return (name) => {
    const operation = cache.get(name) ?? getOperationAST(document, name);
    if (!operation) {
      const message =
        name === null
          ? "The document has several operations: select one with operationName."
          : `The document has no operation named "${name}".`;
      throw refusalOf(message, "GRAPHQL_VALIDATION_FAILED");
    }
    // Validation passes over the fields of a type that does not exist.
    if (!schema.getRootType(operation.operation)) {
      const message = `The schema has no ${operation.operation} that you may use.`;
      throw refusalOf(message, "GRAPHQL_VALIDATION_FAILED", operation);
    }
    cache.set(name, operation);
    return operation;
  };
}

function makeVariableCheck(document: DocumentNode, schema: GraphQLSchema): CheckedDocument["checkVariables"] {
  const requiredVariables = memoizePerObject((operation: OperationDefinitionNode) =>
    requiredVariablesOf(operation, document, schema),
  );
  return (operation, variables) => {
    refusePrototypeNames(operation, variables);
    const missing = requiredVariables(operation).find((name) => variables[name] === null);
    if (missing === undefined) return;
    const message = `Variable "$${missing}" must not be null: it is used where a value is required.`;
    throw refusalOf(message, "VALIDATION_ERROR");
  };
}

/** An absent variable with the name of a method of Object.prototype would have that method as its value. */
function refusePrototypeNames({ variableDefinitions = [] }: OperationDefinitionNode, variables: object): void {
  for (const { variable, type, defaultValue } of variableDefinitions) {
    const name = variable.name.value;
    const isGiven = defaultValue || type.kind === Kind.NON_NULL_TYPE || Object.hasOwn(variables, name);
    if (isGiven || !(name in Object.prototype)) continue;
    const message = `Variable "$${name}" must be given: send null, or rename it.`;
    throw refusalOf(message, "VALIDATION_ERROR");
  }
}

/** The variables of nullable types that are used in non-null positions. */
function requiredVariablesOf(
  operation: OperationDefinitionNode,
  document: DocumentNode,
  schema: GraphQLSchema,
): string[] {
  const nullable = new Set(
    operation.variableDefinitions
      ?.filter(({ type }) => type.kind !== Kind.NON_NULL_TYPE)
      .map(({ variable }) => variable.name.value),
  );
  if (nullable.size === 0) return [];
  const context = new ValidationContext(schema, document, new TypeInfo(schema), () => {});
  return context
    .getRecursiveVariableUsages(operation)
    .filter(({ node, type }) => isNonNullType(type) && nullable.has(node.name.value))
    .map(({ node }) => node.name.value);
}

/** An invalid page size is a VALIDATION_ERROR in the document as it is in variables. */
function makeValidationError(document: DocumentNode): (error: GraphQLError) => GraphQLError {
  const pageSizes = new Set<ASTNode>();
  visit(document, {
    Argument: ({ name, value }) => void (PAGE_SIZE_ARGUMENTS.has(name.value) && pageSizes.add(value)),
  });
  return (error) => {
    const isPageSize = error.nodes?.some((node) => pageSizes.has(node) && node.kind !== Kind.VARIABLE);
    return withCode(error, isPageSize ? "VALIDATION_ERROR" : "GRAPHQL_VALIDATION_FAILED");
  };
}

function withCode(error: GraphQLError, code: string): GraphQLError {
  const { message, nodes, source, positions } = error;
  return new GraphQLError(message, {
    nodes: nodes ?? null,
    source: source ?? null,
    positions: positions ?? null,
    extensions: { code },
  });
}

/**
 * Errors in `@skip` and `@include` at the root of subscriptions. A subscription has one root field, which is determined before
 * variables are known; execution would fail when a condition excludes it.
 */
function findSubscriptionFaults(document: DocumentNode): GraphQLError[] {
  const fragments = fragmentsOf(document);
  return document.definitions.flatMap((definition) => {
    if (definition.kind !== Kind.OPERATION_DEFINITION) return [];
    if (definition.operation !== OperationTypeNode.SUBSCRIPTION) return [];
    const selections = selectionsOf(definition.selectionSet, fragments, new Set());
    const variable = selections
      .flatMap(conditionsOf)
      .filter((condition) => conditionValue(condition)?.kind === Kind.VARIABLE);
    if (variable.length > 0) {
      return [subscriptionFault("A condition at the root of a subscription cannot depend on a variable.", variable)];
    }
    // Validation refuses unknown fragments.
    const isSelected = selections.some(
      (selection) =>
        selection.kind === Kind.FIELD ||
        (selection.kind === Kind.FRAGMENT_SPREAD && !fragments.has(selection.name.value)),
    );
    return isSelected
      ? []
      : [subscriptionFault("The subscription selects no field: a condition excludes it.", [definition])];
  });
}

/** The selections at the root that no condition excludes, with fragments expanded. */
function selectionsOf({ selections }: SelectionSetNode, fragments: Fragments, spread: Set<string>): SelectionNode[] {
  return selections
    .filter((selection) => !conditionsOf(selection).some(excludesSelection))
    .flatMap((selection) => {
      if (selection.kind === Kind.FIELD) return [selection];
      if (selection.kind === Kind.INLINE_FRAGMENT) {
        return [selection, ...selectionsOf(selection.selectionSet, fragments, spread)];
      }
      const { value: name } = selection.name;
      const fragment = fragments.get(name);
      if (!fragment || spread.has(name)) return [selection];
      spread.add(name);
      return [selection, ...selectionsOf(fragment.selectionSet, fragments, spread)];
    });
}

function conditionsOf({ directives = [] }: SelectionNode): DirectiveNode[] {
  return directives.filter(({ name }) => name.value === "skip" || name.value === "include");
}

function excludesSelection(condition: DirectiveNode): boolean {
  const value = conditionValue(condition);
  return value?.kind === Kind.BOOLEAN && value.value === (condition.name.value === "skip");
}

function conditionValue({ arguments: values = [] }: DirectiveNode) {
  return values.find(({ name }) => name.value === "if")?.value;
}

function subscriptionFault(message: string, nodes: readonly ASTNode[]): GraphQLError {
  return new GraphQLError(message, { nodes, extensions: { code: "GRAPHQL_VALIDATION_FAILED" } });
}

/**
 * True if an input has a field named like a method of Object.prototype, such as `constructor`: when a client omits it, it would seem to
 * be given.
 */
function hasPrototypeFieldNames(schema: GraphQLSchema): boolean {
  return Object.values(schema.getTypeMap())
    .filter(isInputObjectType)
    .some((type) => Object.keys(type.getFields()).some((name) => name in Object.prototype));
}

/** Removes the prototypes of all objects in a JSON value. Iterates, since the value may be too deep for recursion. */
function dropPrototypes(value: unknown): void {
  const waiting = [value];
  while (waiting.length > 0) {
    const next = waiting.pop();
    if (typeof next !== "object" || next === null) continue;
    if (!Array.isArray(next)) Object.setPrototypeOf(next, null);
    for (const item of Object.values(next)) waiting.push(item);
  }
}

/** Limits the documents and statements cached for all schemas together. When the limit is reached, all caches are cleared. */
export class DocumentBudget {
  #remaining = MAX_WEIGHT;
  readonly #forget: (() => void)[] = [];

  onFull(forget: () => void): void {
    this.#forget.push(forget);
  }

  reserve(weight: number): void {
    if (this.#remaining < weight) {
      for (const forget of this.#forget) forget();
      this.#remaining = MAX_WEIGHT;
    }
    this.#remaining -= weight;
  }
}
