import {
  type DocumentNode,
  GraphQLBoolean,
  GraphQLError,
  GraphQLID,
  type GraphQLInputType,
  GraphQLInt,
  type GraphQLSchema,
  GraphQLString,
  getNullableType,
  getVariableValues,
  type OperationDefinitionNode,
  typeFromAST,
} from "grafast/graphql";
import type { Catalog } from "#catalog";
import type { ShownRows } from "#planner/shown-tables";
import { type RowsWrite, type SelectionValues, shownRowsOf } from "#plugins";
import type { Statement } from "#postgres/statement";
import { RecentMap } from "#runtime";
import type { Stepwise } from "#runtime/concurrency";
import {
  type CompiledOperation,
  type CompiledStatement,
  type CompiledStep,
  compileOperation,
} from "./compile-operation.ts";
import { NotCompiled } from "./not-compiled.ts";
import {
  argumentValue,
  bindParameters,
  type CoercedVariables,
  EVENT_KEYS,
  type EventKeys,
  MAX_BYTES,
  OperationValues,
  presenceOf,
} from "./operation-values.ts";
import { SelectionReader } from "./selection-reader.ts";

/** A step of a compiled operation with the values of one request. */
export type BoundStep<Step = CompiledStep> = {
  readonly step: Step;
  readonly statement: Statement;
  readonly before: Statement | undefined;
  /** The rows that are written before. */
  readonly rows: RowsWrite | undefined;
};

export type BoundOperation = {
  readonly plan: OperationPlan;
  readonly steps: readonly BoundStep[];
  /** The statements for the row of an event. */
  forEvent(keys: EventKeys): BoundOperation;
  /** The rows that the result of a query shows, if the query runs as compiled. */
  shownRows(catalog: Catalog): readonly ShownRows[];
};

/** A compiled operation, shared by requests with the same combination of variables. */
class OperationPlan {
  readonly compiled: CompiledOperation;
  #requestsByField = 0;

  constructor(compiled: CompiledOperation) {
    this.compiled = compiled;
  }

  /** The statement has exceeded a limit that holds for each field of the operation: the next requests run field by field at once. */
  noteExceededLimit(): void {
    this.#requestsByField = REQUESTS_AFTER_LIMIT;
  }

  /** Throws NotCompiled when this request runs field by field. */
  checkLimit(): void {
    if (this.#requestsByField === 0) return;
    this.#requestsByField--;
    throw new NotCompiled("limit", "The statement for all fields has exceeded a limit.");
  }
}

/** A statement that has exceeded a limit is tried again after this number of requests, since their values may be others. */
export const REQUESTS_AFTER_LIMIT = 100;

/** Per operation: each number of rows, and each combination of given variables, has a statement of its own. */
const MAX_STATEMENTS = 32;

type OperationPlansOptions = {
  readonly schema: GraphQLSchema;
  readonly document: DocumentNode;
  readonly operation: OperationDefinitionNode;
  /** Called before the text of a statement is kept. */
  readonly reserve: (characters: number) => void;
};

/** The statements of one operation. */
export class OperationPlans {
  readonly #options: OperationPlansOptions;
  readonly #variableTypes: readonly (readonly [name: string, type: GraphQLInputType])[];
  /** Variables whose values are part of the text. */
  readonly #fixed = new Set<string>();
  readonly #plans = new RecentMap<string, OperationPlan | NotCompiled>(2 * MAX_STATEMENTS);

  constructor(options: OperationPlansOptions) {
    this.#options = options;
    const { schema, operation } = options;
    this.#variableTypes = (operation.variableDefinitions ?? []).map(({ variable, type }) => {
      const input = typeFromAST(schema, type as Parameters<typeof typeFromAST>[1]) as GraphQLInputType;
      return [variable.name.value, input];
    });
  }

  /**
   * Throws NotCompiled when the fields must run by themselves, which also assigns errors of values to them. Where they may not,
   * the statement is tried even if it has exceeded a limit.
   */
  *bind(inputs: CoercedVariables, maxBytes: number, mayRunFields: boolean): Stepwise<BoundOperation> {
    const variables = this.#coerce(inputs);
    const plan = yield* this.#find(variables);
    if (plan instanceof NotCompiled) throw plan;
    if (mayRunFields) plan.checkLimit();
    try {
      return this.#bound(plan, { ...variables, [MAX_BYTES]: maxBytes });
    } catch (error) {
      throw asNotCompiled(error);
    }
  }

  #bound(plan: OperationPlan, variables: CoercedVariables): BoundOperation {
    return {
      plan,
      steps: plan.compiled.map((step) => bindStep(step, variables)),
      forEvent: (keys) => this.#bound(plan, { ...variables, [EVENT_KEYS]: keys }),
      shownRows: (catalog) => this.#shownRows(variables, catalog),
    };
  }

  #shownRows(variables: CoercedVariables, catalog: Catalog): readonly ShownRows[] {
    const { schema, document, operation } = this.#options;
    const values = new OperationValues(schema, variables, new Set());
    const reader = new SelectionReader(schema, document, values);
    const selected = { type: schema.getQueryType()!, selections: [operation.selectionSet] };
    const read: SelectionValues = {
      fieldsOf: (type, selections) => reader.fieldsOf(type, selections),
      argumentsOf(field, node) {
        const args = values.argumentsOf(field, node, () => true);
        return Object.fromEntries([...args].map(([name, value]) => [name, argumentValue(value, variables)]));
      },
    };
    return shownRowsOf(selected, read, catalog);
  }

  #coerce(inputs: CoercedVariables): CoercedVariables {
    const { schema, operation } = this.#options;
    // The general coercion takes longer than all the rest of finding the statement.
    if (this.#variableTypes.every(([name, type]) => isCoerced(inputs[name], type))) return inputs;
    const { coerced, errors } = getVariableValues(schema, operation.variableDefinitions ?? [], inputs, {
      maxErrors: 1,
    });
    if (errors) throw new NotCompiled("argument", errors[0]!.message);
    return coerced;
  }

  *#find(variables: CoercedVariables): Stepwise<OperationPlan | NotCompiled> {
    const found = this.#plans.get(this.#keyOf(variables));
    if (found) return found;
    const fixed = new Set<string>();
    const plan = yield* this.#compile(variables, fixed);
    // Keys of fewer values do not tell statements apart.
    if (!fixed.isSubsetOf(this.#fixed)) this.#plans.clear();
    for (const name of fixed) this.#fixed.add(name);
    this.#plans.set(this.#keyOf(variables), plan);
    return plan;
  }

  *#compile(variables: CoercedVariables, fixed: Set<string>): Stepwise<OperationPlan | NotCompiled> {
    const { schema, document, operation, reserve } = this.#options;
    try {
      const compiled = yield* compileOperation({ schema, document, operation, variables, fixed });
      for (const { text, before } of compiled) reserve(text.length + (before?.text.length ?? 0));
      return new OperationPlan(compiled);
    } catch (error) {
      return asNotCompiled(error);
    }
  }

  #keyOf(variables: CoercedVariables): string {
    const parts = this.#variableTypes.map(([name, type]) => {
      const value = variables[name];
      const isFixed = this.#fixed.has(name) && value !== undefined;
      return isFixed ? JSON.stringify(value) : presenceOf(value, type);
    });
    return parts.join();
  }
}

/** Values that coercion to these types does not change. */
const PLAIN_VALUES = new Map<unknown, string>([
  [GraphQLString, "string"],
  [GraphQLID, "string"],
  [GraphQLBoolean, "boolean"],
]);

function isCoerced(value: unknown, type: GraphQLInputType): boolean {
  const scalar = getNullableType(type);
  if (scalar === GraphQLInt) return typeof value === "number" && value === (value | 0);
  return typeof value === PLAIN_VALUES.get(scalar);
}

export function bindStep<Step extends Omit<CompiledStep, "document">>(
  step: Step,
  variables: CoercedVariables,
): BoundStep<Step> {
  const { before, write } = step;
  return {
    step,
    statement: bindStatement(step, variables),
    before: before === null ? undefined : bindStatement(before, variables),
    rows: write?.rows?.(variables),
  };
}

function bindStatement({ text, parameters }: CompiledStatement, variables: CoercedVariables): Statement {
  return { text, values: bindParameters(parameters, variables) };
}

/** A value that a codec or a page refuses is an error of the field, which is found out field by field. */
function asNotCompiled(error: unknown): NotCompiled {
  if (error instanceof NotCompiled) return error;
  const message = error instanceof GraphQLError || error instanceof Error ? error.message : String(error);
  return new NotCompiled("argument", message);
}
