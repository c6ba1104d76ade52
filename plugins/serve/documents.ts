import {
  type ASTNode,
  BREAK,
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  isNonNullType,
  Kind,
  type OperationDefinitionNode,
  parse,
  TypeInfo,
  ValidationContext,
  validate,
  visit,
} from "postgraphile/graphql";
import { oncePer } from "../../engine/once-per.ts";
import { type Hits, RecentMap } from "../../engine/recent-map.ts";
import { type Echo, echoOf } from "./echo.ts";
import { keepDigits } from "./exact-literals.ts";
import { makeRestoreDigits, type RestoreDigits } from "./exact-variables.ts";
import { dropPrototypes, hasInheritedNames } from "./inherited-names.ts";
import { type Limits, measure, tooComplex, tooDeep } from "./limits.ts";
import type { PlanMemory } from "./plan-memory.ts";
import { subscriptionFaults } from "./subscription-root.ts";

type Variables = Readonly<Record<string, unknown>>;

/** A document that may be executed. */
export type ReadDocument = {
  readonly document: DocumentNode;
  /** How many fields with fields of their own its largest operation has, those about the schema left out. */
  readonly planned: number;
  /** Whether any of its operations asks for `__schema` or `__type`. */
  readonly isIntrospection: boolean;
  /** About what it takes in memory, with its plan. */
  readonly bytes: number;
  /** The one of that name, or the only one there is. */
  operation(name: string | null): OperationDefinitionNode;
  /** Of one of its operations. */
  echo(operation: OperationDefinitionNode): Echo;
  /** Of one of its operations; null where its variables have lost no digits. */
  restoreDigits(operation: OperationDefinitionNode): RestoreDigits | null;
  /**
   * Refuses a null where the operation needs a value: what a default makes up for is an absent variable only. Leaves in them
   * only what was sent.
   */
  checkVariables(operation: OperationDefinitionNode, variables: Variables): void;
};

/** Why a request is not executed at all. */
export class Refusal extends Error {
  override name = "Refusal";
  readonly errors: readonly GraphQLError[];

  constructor(errors: readonly GraphQLError[]) {
    super(errors[0]?.message ?? "refused");
    this.errors = errors;
  }
}

/** Grafast keeps as many plans. */
const MOST_REMEMBERED = 500;
const BYTES_PER_UNIT = 40_000;
/** The document itself is kept too, as a tree with places: as much for so many characters. */
const CHARACTERS_PER_UNIT = 500;
/** Those are read and planned in a few milliseconds. */
const LONGEST_SHORT = 1_000;
/** Longer ones are read anew each time. */
const LONGEST_REMEMBERED = 100_000;
const PAGING: ReadonlySet<string> = new Set(["first", "last", "limit", "offset"]);
/** More than these help nobody, and finding them costs. */
const MOST_ERRORS = 20;

type ReaderOptions = {
  readonly schema: GraphQLSchema;
  readonly limits: Limits;
  /** What is remembered of all schemas together. */
  readonly memory: PlanMemory;
  readonly hits?: Hits | undefined;
  /** Called when a document does not fit the schema. */
  readonly onInvalid?: (() => void) | undefined;
};

export type DocumentReader = {
  /** Reads and checks a document, or refuses it by throwing. */
  read(text: string): ReadDocument;
  /** Whether it has to be read anew, and takes long: its plan has to be made anew as well. */
  isLongWork(text: string): boolean;
};

/** Reads and checks documents against one schema, each once; those that are refused are not remembered. */
export function makeDocumentReader({ schema, limits, memory, hits, onInvalid }: ReaderOptions): DocumentReader {
  const known = new RecentMap<string, ReadDocument>(MOST_REMEMBERED, undefined, hits);
  const hasTraps = hasInheritedNames(schema);
  memory.onFull(() => known.clear());
  const read = (text: string): ReadDocument => {
    const remembered = known.get(text);
    if (remembered) return remembered;
    const { document, weight, planned } = readWithin(text, schema, limits, onInvalid);
    memory.take(weight);
    const checkNeeds = rememberNeeds(document, schema);
    const made: ReadDocument = {
      document,
      planned,
      isIntrospection: hasIntrospection(document),
      bytes: weight * BYTES_PER_UNIT,
      operation: rememberOperations(document),
      echo: rememberEchoes(document),
      restoreDigits: oncePer((operation) => makeRestoreDigits(operation, schema)),
      checkVariables: (operation, variables) => {
        checkNeeds(operation, variables);
        if (hasTraps) dropPrototypes(variables);
      },
    };
    if (text.length <= LONGEST_REMEMBERED) known.set(text, made);
    return made;
  };
  return { read, isLongWork: (text) => text.length > LONGEST_SHORT && !known.has(text) };
}

function readWithin(text: string, schema: GraphQLSchema, limits: Limits, onInvalid: ReaderOptions["onInvalid"]) {
  try {
    const document = parseWithin(text, limits);
    const { errors, weight, planned } = measure(document, limits);
    check(errors);
    check(subscriptionFaults(document));
    const faults = validate(schema, document, undefined, { maxErrors: MOST_ERRORS });
    if (faults.length > 0) {
      onInvalid?.();
      throw new Refusal(faults.map(makeInvalid(document)));
    }
    return { document: keepDigits(document, schema), weight: weight + text.length / CHARACTERS_PER_UNIT, planned };
  } catch (error) {
    // The parser, and whatever walks over values, calls itself for each level.
    if (error instanceof RangeError) throw new Refusal([tooDeep("too many", limits.depth)]);
    // A rule reads the conditions at the root of a subscription as execution does, which throws where they are malformed.
    if (error instanceof GraphQLError) throw new Refusal([coded(error, "GRAPHQL_VALIDATION_FAILED")]);
    throw error;
  }
}

function check(errors: readonly GraphQLError[]): void {
  if (errors.length > 0) throw new Refusal(errors);
}

function parseWithin(text: string, { tokens }: Limits): DocumentNode {
  try {
    return parse(text, { maxTokens: tokens });
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error;
    if (error.message.includes("Parsing aborted")) {
      throw new Refusal([tooComplex("The document has too many tokens", tokens)]);
    }
    throw new Refusal([coded(error, "GRAPHQL_PARSE_FAILED")]);
  }
}

const INTROSPECTION: ReadonlySet<string> = new Set(["__schema", "__type"]);

function hasIntrospection(document: DocumentNode): boolean {
  let isFound = false;
  visit(document, {
    Field({ name }) {
      if (!INTROSPECTION.has(name.value)) return undefined;
      isFound = true;
      return BREAK;
    },
  });
  return isFound;
}

function rememberOperations(document: DocumentNode): ReadDocument["operation"] {
  const known = new Map<string | null, OperationDefinitionNode>();
  return (name) => {
    const operation = known.get(name) ?? getOperationAST(document, name);
    if (!operation) {
      const message =
        name === null
          ? "The document has several operations: say in operationName which one."
          : `The document has no operation named "${name}".`;
      throw new Refusal([coded(new GraphQLError(message), "GRAPHQL_VALIDATION_FAILED")]);
    }
    known.set(name, operation);
    return operation;
  };
}

function rememberEchoes(document: DocumentNode): ReadDocument["echo"] {
  const known = new WeakMap<OperationDefinitionNode, Echo>();
  return (operation) => {
    const echo = known.get(operation) ?? echoOf(operation, document);
    known.set(operation, echo);
    return echo;
  };
}

function rememberNeeds(document: DocumentNode, schema: GraphQLSchema): ReadDocument["checkVariables"] {
  const known = new WeakMap<OperationDefinitionNode, readonly string[]>();
  return (operation, variables) => {
    refuseInherited(operation, variables);
    const needed = known.get(operation) ?? neededOf(operation, document, schema);
    known.set(operation, needed);
    const missing = needed.find((name) => variables[name] === null);
    if (missing === undefined) return;
    const message = `Variable "$${missing}" must not be null: it stands where a value is needed.`;
    throw new Refusal([coded(new GraphQLError(message), "VALIDATION_ERROR")]);
  };
}

/** Whoever leaves out a variable named as what every object of JavaScript has would have that for its value. */
function refuseInherited({ variableDefinitions = [] }: OperationDefinitionNode, variables: object): void {
  for (const { variable, type, defaultValue } of variableDefinitions) {
    const name = variable.name.value;
    const isGiven = defaultValue || type.kind === Kind.NON_NULL_TYPE || Object.hasOwn(variables, name);
    if (isGiven || !(name in Object.prototype)) continue;
    const message = `Variable "$${name}" cannot be left out here: send null, or give it another name.`;
    throw new Refusal([coded(new GraphQLError(message), "VALIDATION_ERROR")]);
  }
}

/** The variables that may be absent by their type, and stand where null may not. */
function neededOf(operation: OperationDefinitionNode, document: DocumentNode, schema: GraphQLSchema): string[] {
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

/** A page size that is no number is a value that is not acceptable, whether it stands in the document or in its variables. */
function makeInvalid(document: DocumentNode): (error: GraphQLError) => GraphQLError {
  const pageSizes = new Set<ASTNode>();
  visit(document, {
    Argument: ({ name, value }) => void (PAGING.has(name.value) && pageSizes.add(value)),
  });
  return (error) => {
    const isPageSize = error.nodes?.some((node) => pageSizes.has(node) && node.kind !== Kind.VARIABLE);
    return coded(error, isPageSize ? "VALIDATION_ERROR" : "GRAPHQL_VALIDATION_FAILED");
  };
}

function coded(error: GraphQLError, code: string): GraphQLError {
  const { message, nodes, source, positions } = error;
  return new GraphQLError(message, {
    nodes: nodes ?? null,
    source: source ?? null,
    positions: positions ?? null,
    extensions: { code },
  });
}
